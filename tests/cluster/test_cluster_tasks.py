"""Sweeps, debias reports, tables and sentences on a cluster: the same as without one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.cluster.connection import Cluster
from momentseek.cluster.tasks import ClusterTask, in_order, run_tasks
from momentseek.core.errors import MomentseekError

pytestmark = [pytest.mark.figures, pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore::FutureWarning")]
SMALL = [f"--set={s}" for s in ("hidden=8", "heads=2", "steps=2", "batch=6", "max_clips=40", "threads=1")]


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> str:
    pytest.importorskip("torch")
    return str(cluster.ray.get_runtime_context().gcs_address)


def run(*arguments: object, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command of ours in a process of its own, in a folder."""
    asked = [sys.executable, "-m", "momentseek", *map(str, arguments)]
    return subprocess.run(asked, cwd=cwd, capture_output=True, text=True, timeout=300, **options)


def rows(text: str) -> list[dict[str, Any]]:
    """The rows of a table, without how long each took."""
    return [{key: value for key, value in row.items() if key != "minutes"} for row in json.loads(text)["rows"]]


def weights(folder: Path) -> dict[str, bytes]:
    """The bytes of the weights of all checkpoints, by their folder; the order in their headers is not fixed."""
    found = {str(path.parent.relative_to(folder)): path.read_bytes() for path in folder.rglob("best.safetensors")}
    return {name: content[8 + int.from_bytes(content[:8], "little") :] for name, content in found.items()}


def test_a_sweep_has_the_same_weights_and_table(address: str, tmp_path: Path) -> None:
    simulate(tmp_path / "data", SimulationSettings(videos=16, queries=30, seed=0, video_dim=12, text_dim=8))
    asked = ["sweep", "xml", "--data", "data", "--train", "train_top01", "--seeds", 2, "--vary", "kernel=1,5", *SMALL]
    here = run(*asked, "--out", "here", "--json", "-q", cwd=tmp_path)
    there = run(*asked, "--out", "there", "--json", "--on", address, cwd=tmp_path)
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    assert rows(here.stdout) == rows(there.stdout)
    assert len(weights(tmp_path / "here")) == 4
    assert weights(tmp_path / "here") == weights(tmp_path / "there")
    assert "done: xml, train_top01, 5, seed 1" in there.stderr


def test_a_debias_report_and_a_table_are_the_same(address: str, tmp_path: Path) -> None:
    simulate_grounding(tmp_path / "films", GroundingSettings(videos=40, video_dim=12, text_dim=8))
    small = ["--set", "hidden=8", "--set", "batch=8", "--set", "threads=1"]
    asked = ["debias", "tan2d", "mdd", "--data", "films", "--seeds", 1, "--no-plots", "--json", *small]
    asked += ["--set", "steps=2", "--baseline-seeds", 1]
    here, there = run(*asked, "--out", "a", cwd=tmp_path), run(*asked, "--out", "b", "--on", address, cwd=tmp_path)
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    assert json.loads(here.stdout) == json.loads(there.stdout)
    asked = [
        "reproduce",
        "debiased-2",
        "--data",
        "films",
        "--rows",
        "bias-based,tan2d,ctrl",
        "--seeds",
        2,
        "--steps",
        2,
    ]
    here, there = (
        run(*asked, *small, "--json", "--out", out, *on, cwd=tmp_path)
        for out, on in (("c", []), ("d", ["--on", address]))
    )
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    plain, spread = json.loads(here.stdout), json.loads(there.stdout)
    for table in (plain, spread):
        for row in table["rows"]:
            row.pop("minutes", None)
    assert plain == spread


def test_ctrl_c_saves_running_tasks_and_the_same_command_continues(address: str, tmp_path: Path) -> None:
    simulate(tmp_path / "data", SimulationSettings(videos=16, queries=30, seed=0, video_dim=12, text_dim=8))
    long = [*SMALL, "--set=steps=100000", "--set=validate_every=50000", "--set=save_minutes=0.02"]
    asked = [
        sys.executable,
        "-m",
        "momentseek",
        "sweep",
        "xml",
        "--data",
        "data",
        "--train",
        "train_top01",
        "--out",
        "s",
    ]
    process = subprocess.Popen([*asked, *long, "--on", address], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    folder = tmp_path / "s" / "xml" / "train_top01" / "seed-0"
    until = time.monotonic() + 240
    while not list(folder.glob("last*")) and time.monotonic() < until:  # saved every second, so it is well under way
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.2)
    saved = max(path.stat().st_mtime_ns for path in folder.glob("last*"))
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=180)
    assert process.returncode == 130, told
    assert "stopped and saved; the same command continues" in told
    assert "Traceback" not in told
    assert max(path.stat().st_mtime_ns for path in folder.glob("last*")) > saved


def pid_after(seconds: float, fail: bool) -> int:
    time.sleep(seconds)
    if fail:
        raise MomentseekError("this one was told to fail")
    return os.getpid()


def test_a_failure_names_its_node(cluster: Cluster) -> None:
    with pytest.raises(
        MomentseekError, match=r"1 of 2 tasks failed on the cluster: wrong on [0-9.]+: this one was told"
    ):
        list(
            run_tasks(
                cluster, [ClusterTask("right", pid_after, (0, False)), ClusterTask("wrong", pid_after, (0, True))]
            )
        )


def test_sentences_are_encoded_to_the_same_bits(cluster: Cluster) -> None:
    pytest.importorskip("onnxruntime")
    from momentseek.recognition.encoders.registry import encode_texts

    texts = [[f"a person opens door {i} and {j}" for i in range(40)] for j in range(3)]
    tasks = [ClusterTask(str(i), encode_texts, ("minilm", some)) for i, some in enumerate(texts)]
    found = list(in_order(run_tasks(cluster, tasks)))
    assert [one.tobytes() for one in found] == [encode_texts("minilm", some).tobytes() for some in texts]


def test_pools_of_many_videos_are_the_same(address: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    deeds = [
        f"{verb} the {thing}" for verb in ("opens", "closes", "carries", "paints") for thing in ("door", "box", "chair")
    ]
    videos = {
        f"v{i:02d}": {"duration": 30.0, "timestamps": [[1.0, 5.0]], "sentences": [f"a person {deeds[i % len(deeds)]}"]}
        for i in range(36)
    }
    (tmp_path / "test.json").write_text(json.dumps(videos))
    asked = ["data", "massive", "test.json", "--pool", 6, "--text-negative", 0.8, "--json"]
    here, there = (
        run(*asked, "--out", "a.json", cwd=tmp_path),
        run(*asked, "--out", "b.json", "--on", address, cwd=tmp_path),
    )
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    found, spread = json.loads(here.stdout), json.loads(there.stdout)
    assert found.pop("out") != spread.pop("out")
    assert found == spread
    assert found["kept"] > 0
