from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from momentseek.cli import cli
from momentseek.cli.progress import TrainingLine
from momentseek.models.training.folder import TrainingProgress

QUICK = ["hidden=8", "steps=2", "validate_every=2", "map_layers=1", "threads=1"]
SETTINGS = [f"--set={s}" for s in QUICK]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films") / "films"
    result = CliRunner().invoke(
        cli, ["simulate", "--like", "charades", "--videos", "40", "--hard", "0", "--out", str(folder)]
    )
    assert result.exit_code == 0, result.output
    return folder


def debias(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["debias", *map(str, arguments)])


def test_models_are_trained_once_and_compared_with_baselines(films: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ["tan2d", "ours=mdd[confounders=L, tree=false]", "--data", films, "--out", out, *SETTINGS]
    result = debias(*asked, "--seeds", 1, "--baseline-seeds", 1)
    assert result.exit_code == 0, result.output
    assert "SIMULATED DATA" in result.stdout
    assert [line.split("  ")[0] for line in result.stdout.splitlines()[5:11]] == [
        "tan2d", "ours", "bias-based (blind)", "moment-frequency (blind)", "predict-all (blind)", "chance (blind)",
    ]  # fmt: skip
    assert {p.name for p in out.iterdir()} == {
        "report.md", "report.json", "gap.csv", "thresholds.csv", "places.csv", "figures", "runs",
    }  # fmt: skip
    assert 'confounders = "L"' in (out / "runs/ours-0/config.toml").read_text()
    made = {p: p.stat().st_mtime_ns for p in out.rglob("runs/*/*") if p.suffix in (".safetensors", ".jsonl")}
    assert len(made) == 8
    again = debias(*asked, "--seeds", 1, "--baseline-seeds", 1, "--json", "--no-plots", "-q")
    assert {p: p.stat().st_mtime_ns for p in made} == made
    assert json.loads(again.stdout) == json.loads((out / "report.json").read_text())
    taken = debias(f"old={out}/runs/tan2d-0", f"old={out}/runs/tan2d-0", "--data", films, "--out", tmp_path / "b", "-q",
                   "--json", "--baseline-seeds", 0, "--no-plots")  # fmt: skip
    one, two = (json.loads(r.stdout)["gaps"][0] for r in (again, taken))
    assert two["ood"] == {"mean": one["ood"]["mean"], "sd": 0.0, "count": 2}


def test_same_command_continues_after_ctrl_c(films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: TrainingLine, progress: TrainingProgress) -> None:
        if progress.step == 1:
            signal.raise_signal(signal.SIGINT)

    asked = ["tan2d", "--data", films, "--out", tmp_path, *SETTINGS, "--seeds", 1, "--no-plots", "--baseline-seeds", 0]
    monkeypatch.setattr(TrainingLine, "__call__", interrupt)
    stopped = debias(*asked)
    assert stopped.exit_code == 130
    assert "the same command continues" in stopped.stderr
    assert not (tmp_path / "report.md").exists()
    monkeypatch.undo()
    result = debias(*asked)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "runs/tan2d-0/report.json").read_text())["steps"] == 2


def test_predictions_from_elsewhere_need_no_torch(films: Path, tmp_path: Path) -> None:
    runs = {}
    for split in ("test_iid", "test_ood"):
        runs[split] = tmp_path / f"{split}.jsonl"
        made = ["baseline", "moment-frequency", "--train", films / "train.txt", "--test", films / f"{split}.txt"]
        made += ["--videos", films / "durations.json"]
        assert CliRunner().invoke(cli, [*map(str, made), "--out", str(runs[split])]).exit_code == 0
    arguments = [
        "debias",
        "--run",
        f"ours={runs['test_iid']},{runs['test_ood']}",
        "--truth-iid",
        films / "test_iid.txt",
    ]
    arguments += ["--truth-ood", films / "test_ood.txt", "--truth-train", films / "train.txt", "--no-plots"]
    arguments += ["--videos", films / "durations.json", "--out", tmp_path / "out", "--baseline-seeds", "1"]
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from momentseek.cli import cli\n"
        "cli.main(sys.argv[1:], standalone_mode=False)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "SIMULATED DATA" in result.stdout
    gaps = json.loads((tmp_path / "out/report.json").read_text())["gaps"]
    ours, same = ([(g["iid"], g["ood"]) for g in gaps if g["system"] == name] for name in ("ours", "moment-frequency"))
    assert ours == same
    assert ours[0][0]["mean"] > 0


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "there is nothing to compare"),
        (["mdd"], "models need data and a folder"),
        (["--run", "x=a.jsonl,b.jsonl"], "no truth is given"),
        (["mdd[tre=true]", "--data", "FILMS", "--out", "OUT"], "did you mean 'tree'"),
        (["a b=mdd", "a-b=mdd", "--data", "FILMS", "--out", "OUT"], "would both be kept in"),
        (["x=mdd", "--data", "FILMS", "--out", "OUT", "--ood", "ood"], "there is no split 'ood'"),
        (["x=none/", "--data", "FILMS", "--out", "OUT"], "there is no such checkpoint"),
        (["x=a,b", "--data", "FILMS", "--truth-iid", "t"], "--data names the truths already"),
    ],
    ids=["nothing", "no-data", "no-truth", "setting", "folder-twice", "split", "checkpoint", "truths-twice"],
)
def test_incomparable_models_are_one_sentence(arguments: list[str], what: str, films: Path, tmp_path: Path) -> None:
    places = {"FILMS": str(films), "OUT": str(tmp_path / "out")}
    result = debias(*(places.get(a, a) for a in arguments))
    assert result.exception is not None
    assert what in str(result.exception)
    assert not (tmp_path / "out" / "runs").exists()
