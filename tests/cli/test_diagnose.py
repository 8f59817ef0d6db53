from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    truth = [{"query_id": f"q{i}", "video": "v", "start": 10, "end": 20 + i, "relevance": 1} for i in range(6)]
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(t) + "\n" for t in truth))
    for name, shift in (("one", 1), ("two", 4)):
        rows = [
            {"query_id": f"q{i}", "video": "v", "start": 10 + shift * k, "end": 18 + shift, "score": -k}
            for i in range(6)
            for k in range(2)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return tmp_path


def test_text(momentseek: Command, files: Path) -> None:
    done = momentseek("diagnose", "one.jsonl", "two.jsonl", "-t", "truth.jsonl", "-m", "R@1[IoU>=0.5]", cwd=files)
    assert done.returncode == 0, done.stderr
    assert "BROKEN" in done.stdout
    assert "do both runs score" in done.stdout
    assert "Not run: location" in done.stdout


def test_json_and_figures(momentseek: Command, files: Path) -> None:
    done = momentseek(
        "diagnose", "one.jsonl", "two.jsonl", "-t", "truth.jsonl", "--only", "ties", "--only", "noise",
        "--noise", 0.1, "--json", "--plots", "figures", cwd=files,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["axioms"] is None
    assert found["reasons"]["axioms"] == "not asked for (--only)"
    assert found["noise"][0]["gammas"] == [0.1]
    assert (files / "figures/ties.png").exists()
    assert "wrote figures/ties.png" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-t", "truth.jsonl"], "nothing to diagnose"),
        (["one.jsonl", "-t", "truth.jsonl", "--only", "ties"], "at least two runs"),
        (["one.jsonl", "-t", "truth.jsonl", "-m", "NDGC@5"], "did you mean"),
        (["one.jsonl", "-t", "nowhere.jsonl"], "nowhere.jsonl"),
        (["one.jsonl", "-t", "truth.jsonl", "--protocol", "papr"], "did you mean 'paper'"),
    ],
)
def test_errors_are_one_sentence(momentseek: Command, files: Path, arguments: list[str], says: str) -> None:
    done = momentseek("diagnose", *arguments, cwd=files)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_help_explains_each_part(momentseek: Command) -> None:
    done = momentseek("diagnose", "--help")
    for part in ("axioms", "ties", "noise", "location", "--annotators"):
        assert part in done.stdout


def test_bad_folder_is_refused_before_computing(momentseek: Command, files: Path) -> None:
    for folder in ("truth.jsonl", "truth.jsonl/deep/er"):
        done = momentseek("diagnose", "one.jsonl", "-t", "truth.jsonl", "--plots", folder, cwd=files)
        assert done.returncode == 2
        assert done.stdout == ""
        assert "cannot be created as a folder for figures" in done.stderr
        assert done.stderr.count("\n") == 1


def test_axioms_have_no_figure(momentseek: Command, files: Path) -> None:
    done = momentseek(
        "diagnose", "one.jsonl", "-t", "truth.jsonl", "--only", "axioms", "-m", "R@1[IoU>=0.5]", "--plots", "figures",
        cwd=files,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "nothing was drawn into figures" in done.stderr
    assert not (files / "figures").exists()


def test_every_run_has_its_own_name(momentseek: Command, files: Path) -> None:
    (files / "one.jsonl").rename(files / "exp.v1.jsonl")
    (files / "two.jsonl").rename(files / "exp.v2.jsonl")
    runs = ("exp.v1.jsonl", "exp.v2.jsonl", "exp.v2.jsonl")
    done = momentseek("diagnose", *runs, "-t", "truth.jsonl", "--only", "ties", cwd=files)
    assert "runs exp.v1, exp.v2, exp.v2 (2)." in done.stdout
    assert "do all 3 runs score" in done.stdout


def test_clipped_noise(momentseek: Command, files: Path) -> None:
    asked = ("diagnose", "one.jsonl", "-t", "truth.jsonl", "--only", "noise", "-m", "AxIoU@1", "--noise", 0.1)
    assert "(the paper's example, Fig. 2)\n" in momentseek(*asked, cwd=files).stdout
    clipped = momentseek(*asked, "--clip-noise", cwd=files).stdout
    assert "(the paper's example, Fig. 2; its noise is never clipped)\n" in clipped
