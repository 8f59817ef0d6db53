"""examples/plugin: a package of its own, installed as one and used by the commands that take outside things."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.benchmarks.simulation.settings import SimulationSettings

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "plugin"
MEASURE = "MRR@5[IoU>=0.3]"
Once = Callable[[str, Callable[[Path], object]], Path]
Said = tuple[int, str, str]
"""Exit code, stdout and stderr of a command."""
RUN_ALL = """
import contextlib, io, json, sys
from momentseek.cli import main
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["momentseek", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as e:
            code = e.code or 0
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


def run_all(commands: Sequence[Sequence[object]], site: Path | None, cwd: Path | None = None) -> list[Said]:
    """Run commands one after another in one process of their own, with the package or without it."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input=json.dumps([[str(word) for word in words] for words in commands]),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, filter(None, [ROOT / "src", site])))},
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture(scope="session")
def site(once: Once) -> Path:
    """The folder of the installed package; nothing is downloaded."""

    def install(folder: Path) -> None:
        source = shutil.copytree(EXAMPLE, folder / "source")  # setuptools builds next to the sources
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
        done = subprocess.run(
            [*command, "--disable-pip-version-check", "--target", folder / "site", source],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    return once("example-plugin", install) / "site"


@pytest.fixture(scope="session")
def films(once: Once) -> Path:
    settings = GroundingSettings(videos=40, video_dim=12, text_dim=8)
    return once("example-films", lambda folder: simulate_grounding(folder / "films", settings)) / "films"


@pytest.fixture(scope="session")
def series(once: Once) -> Path:
    """Data with captions of moments."""
    settings = SimulationSettings(videos=10, queries=20, seed=0, video_dim=8, text_dim=8)
    return once("example-series", lambda folder: simulate(folder / "series", settings)) / "series"


@pytest.fixture(scope="module")
def used(
    site: Path, films: Path, series: Path, make_video: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Said]:
    """Every command that takes outside things, by its name."""
    out = tmp_path_factory.mktemp("used")
    (out / "videos").mkdir()
    make_video(out / "videos" / "door.mp4", [(6.0, (30, 30, 200)), (6.0, (200, 30, 30)), (6.0, (30, 180, 30))])
    judged = {"query_id": "1", "query": "a red door", "video": "door", "start": 6, "end": 12, "relevance": 1}
    (out / "truth.jsonl").write_text(json.dumps({**judged, "duration": 18.0}))
    library, hues = ["--library", out / "library"], ["--encoder", "hues"]
    described = ["--data", series, "--set", "hidden=8", "--set", "batch=8", "--set", "steps=2", "--set", "threshold=0"]
    described += ["--set", "train=tvc_train", "--set", "validate=tvc_val"]
    data, small = ["--data", films], ["--set", "hidden=16", "--set", "batch=8"]
    short = [*data, *small, "--set", "steps=2"]
    predicted = out / "run.csv"
    table = ["reproduce", "example-films", "--rows", "moment-frequency,span-crf", "--steps", 2, "--set", "hidden=8"]
    commands: dict[str, list[object]] = {
        "train --list": ["train", "--list"],
        "measures": ["measures"],
        "formats": ["formats"],
        "reproduce --list": ["reproduce", "--list"],
        "train": ["train", "span-crf", *short, "--set", 'trackers=["json-lines"]', "--out", out / "run", "-q"],
        "predict": ["predict", out / "run", *data, "--split", "test_ood", "--to", "plain-csv", "--out", predicted],
        "evaluate": ["evaluate", predicted, "--truth", films / "test_ood.txt", "-m", MEASURE, "--json"],
        "compare": ["compare", predicted, predicted, "--truth", films / "test_ood.txt", "-m", MEASURE],
        "sweep": ["sweep", "span-crf", "--seeds", 1, *short, "--out", out / "sweep"],
        "debias": ["debias", "span-crf", "--seeds", 1, *short, "--no-plots", "--baseline-seeds", 0, "-o", out / "d"],
        "reproduce": [*table, "--seeds", 1, *data, "--out", out / "table"],
        "export": ["export", out / "run", "--out", out / "exported"],
        "train a captioner": ["train", "mean-gru", *described, "--out", out / "captioner", "-q"],
        "describe": ["describe", out / "captioner", "--data", series, "--split", "tvc_val", "-q"],
        "add": ["add", out / "videos", *library, *hues, "--no-transcribe", "-q"],
        "search": ["search", *library, "--localiser", "otsu", "--streams", "vision", "--all", "--json", "a red door"],
        "data features": [
            "data", "features", f"train={out / 'truth.jsonl'}", "--videos", out / "videos", *hues, "--own-text",
            "--clip-seconds", 2, "--layout", "npz", "--out", out / "features",
        ],
        "inspect": ["data", "features", "--inspect", out / "features"],
    }  # fmt: skip
    found = dict(zip(commands, run_all(list(commands.values()), site), strict=True))
    missing = ("without", "resumed without", "described without", "searched without")
    done = run_all(
        [
            ["predict", out / "run", *data, "--split", "test_ood", "--out", out / "run.jsonl"],
            ["train", "--resume", out / "run"],
            ["describe", out / "captioner", "--data", series, "--split", "tvc_val"],
            ["search", *library, "a red door"],
        ],
        site=None,
    )
    found |= dict(zip(missing, done, strict=True))
    assert [json.loads(line)["step"] for line in (out / "run" / "track.jsonl").read_text().splitlines()] == [2, 2]
    assert predicted.read_text().startswith("query_id,video,start,end,score\n")
    return found


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("train --list", "span-crf"),
        ("measures", "MRR@K[IoU>=m]"),
        ("formats", "plain-csv"),
        ("reproduce --list", "example-films"),
        ("train", "SIMULATED"),
        ("predict", ""),
        ("evaluate", MEASURE),
        ("compare", MEASURE),
        ("sweep", "span-crf"),
        ("debias", "span-crf"),
        ("reproduce", "ood MRR"),
        ("export", "of torch"),
        ("train a captioner", "CIDEr-D"),
        ("describe", ""),
        ("add", ""),
        ("search", '"start": 6'),
        ("data features", "features"),
        ("inspect", "video_features"),
    ],
)
def test_a_command_takes_what_the_package_adds(command: str, shown: str, used: dict[str, Said]) -> None:
    code, out, err = used[command]
    assert code == 0, err
    assert shown.lower() in out.lower()


@pytest.mark.parametrize(
    ("command", "what"),
    [("without", "model span-crf"), ("resumed without", "model span-crf"), ("described without", "model mean-gru")],
)
def test_a_checkpoint_says_what_it_needs(command: str, what: str, used: dict[str, Said]) -> None:
    code, _, err = used[command]
    assert code == 2
    assert f"needs the {what} of the plug-in momentseek-example 0.1.0, which is missing" in err
    assert "pip install 'momentseek-example==0.1.0'" in err


def test_a_library_says_what_it_needs(used: dict[str, Said]) -> None:
    code, _, err = used["searched without"]
    assert code == 2
    assert "its vectors were made by the encoder 'hues' of a plug-in, which is missing; install the plug-in" in err


def test_its_own_tests_pass(site: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, EXAMPLE / "tests"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(site)])},
        capture_output=True,
        text=True,
        check=False,
        cwd=site,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_single_file_will_do(films: Path, tmp_path: Path) -> None:
    """``--plugin`` before or after the command; the checkpoint names the file."""
    file = shutil.copy(EXAMPLE / "src" / "momentseek_example" / "model.py", tmp_path / "mine.py")
    trained = ["span-crf", "--data", films, "--out", tmp_path / "run", "--set", "steps=2", "--set", "hidden=8", "-q"]
    asked = ["predict", tmp_path / "run", "--data", films, "--split", "test_ood", "--out", tmp_path / "run.jsonl"]
    ((code, _, err),) = run_all([["--plugin", file, "train", *trained]], site=None)
    assert code == 0, err
    (missing, given) = run_all([asked, [*asked, "--plugin", file]], site=None)
    assert (missing[0], given[0]) == (2, 0), given[2]
    assert f"needs the model span-crf of the plug-in {file}, which is missing; load it: --plugin {file}" in missing[2]


def test_the_model_of_the_page_is_trained(films: Path, tmp_path: Path) -> None:
    """The code of docs/plugins.md as a file of one's own."""
    page = (ROOT / "docs" / "plugins.md").read_text()
    (tmp_path / "point.py").write_text(re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)[0])
    plugin = ["--data", films, "--plugin", tmp_path / "point.py"]
    trained, predicted = run_all(
        [
            ["train", "point", *plugin, "--out", tmp_path / "run", "--set", "steps=2", "--set", "hidden=8", "-q"],
            ["predict", tmp_path / "run", *plugin, "--split", "test_ood", "--out", tmp_path / "run.jsonl"],
        ],
        site=None,
    )
    assert (trained[0], predicted[0]) == (0, 0), trained[2] + predicted[2]
    rows = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert all(row["start"] < row["end"] for row in rows)


def test_a_broken_package_is_one_sentence(site: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(site, tmp_path / "site")
    (broken / "momentseek_example" / "measure.py").write_text("import no_such_package\n")
    folder = ROOT / "examples" / "figure-2"
    evaluate = ["evaluate", folder / "predictions.json", "--truth", folder / "truth.json", "-m", "NDCG@3[IoU>=0.3]"]
    other, listed, doctor = run_all([evaluate, ["measures"], ["doctor", "--json"]], site=broken)
    assert other[0] == 0, "a command that does not need it goes on"
    assert listed[0] == 2
    assert listed[2].startswith("momentseek: plug-in MRR of momentseek-example 0.1.0 cannot be imported (ModuleNotF")
    assert listed[2].count("\n") == 1
    items = {item["name"]: item for item in json.loads(doctor[1])["items"]}
    assert items["plug-ins of momentseek-example"]["state"] == "note"
    assert "models: span-crf" in items["plug-ins of momentseek-example"]["found"]


SMALLER = {"--videos 400": "--videos 40", "--set test=test": "--set test=test --set steps=2 --set hidden=16"}
"""What the page says, and what the test does instead."""


def test_commands_for_an_own_model_run_as_documented(site: Path, tmp_path: Path) -> None:
    """Its section of docs/training.md: own features, own model, two of ours, a comparison, cards, a table."""
    page = (ROOT / "docs" / "training.md").read_text()
    (text,) = [part for part in page.split("\n## ") if part.startswith("Your model, your features\n")]
    for old, new in SMALLER.items():
        assert old in text
        text = text.replace(old, new)
    lines = [line for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S) for line in block.splitlines()]
    commands = [shlex.split(line.removeprefix("$ ")) for line in lines]
    assert {words[0] for words in commands} == {"momentseek", "python", "pip"}
    (tmp_path / "own-table.toml").write_text(re.findall(r"^```toml\n(title.*?)^```", text, re.M | re.S)[0])
    (tmp_path / "own.toml").write_text(re.findall(r"^```toml\n(\[model\].*?)^```", text, re.M | re.S)[0])
    script = next(words for words in commands if words[0] == "python")
    path = os.pathsep.join([str(ROOT / "src"), str(site)])
    subprocess.run(
        [sys.executable, ROOT / script[1], *script[2:]], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, check=True
    )
    run = [words[1:] for words in commands if words[0] == "momentseek"]
    run = [[*words, "--steps", "2", "--set", "hidden=16"] if words[0] == "reproduce" else words for words in run]
    run.append(
        ["train", "span-crf", "--data", "films", "--config", "own.toml", "--set", "steps=2", "--out", "own", "-q"]
    )
    done = run_all(run, site, cwd=tmp_path)
    assert [(words, err) for words, (code, _, err) in zip(run, done, strict=True) if code] == []
    compared = next(out for words, (_, out, _) in zip(run, done, strict=True) if words[0] == "compare")
    assert "span-crf" in compared
    assert "3 seeds per system" in compared
    assert "drawn as a whole" in compared
    ranked = next(out for words, (_, out, _) in zip(run, done, strict=True) if words[0] == "leaderboard")
    assert "Raised letters" in ranked
    assert "span-crf" in (tmp_path / "leaderboard.html").read_text()
    assert "span-crf" in (tmp_path / "reproduction" / "own-table.md").read_text()
    assert "hidden = 48" in (tmp_path / "own" / "config.toml").read_text()
