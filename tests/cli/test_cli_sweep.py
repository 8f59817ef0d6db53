from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.cli import cli
from momentseek.cli.progress import TrainingLine
from momentseek.models.training.folder import TrainingProgress


def test_sweep_makes_one_table_and_skips_finished_runs(tmp_path: Path) -> None:
    simulate(tmp_path / "data", SimulationSettings(videos=16, queries=30, seed=0, video_dim=12, text_dim=8))
    settings = [f"--set={s}" for s in ("hidden=8", "heads=2", "steps=1", "batch=6", "max_clips=40")]
    arguments = ["sweep", "xml", "--data", str(tmp_path / "data"), "--train", "train_top01", "--train", "train_top20"]
    arguments += ["--vary", "kernel=1,5", "--out", str(tmp_path / "sweep"), *settings]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert "4 of 4: model xml, train train_top20, kernel 5" in result.stderr
    assert "a simulation, not real videos" in result.stdout
    assert result.stdout.count("\n| xml |") == 4
    report = tmp_path / "sweep" / "xml" / "train_top20" / "kernel=5" / "seed-0" / "report.json"
    before = report.stat().st_mtime_ns
    again = CliRunner().invoke(cli, [*arguments, "--json", "-q"])
    assert [row["kernel"] for row in json.loads(again.stdout)["rows"]] == ["1", "5", "1", "5"]
    assert report.stat().st_mtime_ns == before
    assert {p.name for p in (tmp_path / "sweep").iterdir()} == {"xml", "table.csv", "table.json", "table.md"}


def test_table_shows_every_selection_measure(tmp_path: Path) -> None:
    simulate(tmp_path / "data", SimulationSettings(videos=16, queries=30, seed=0, video_dim=12, text_dim=8))
    settings = ["hidden=8", "heads=2", "steps=1", "batch=6", "max_clips=40"]
    settings.append('report=["R@1[IoU>=0.5]", "NDCG@20[IoU>=0.5]"]')
    arguments = ["sweep", "xml", "--data", str(tmp_path / "data"), "--train", "train_top01", "-q"]
    arguments += ["--vary", "measure=R@1[IoU>=0.5],NDCG@20[IoU>=0.5]", "--out", str(tmp_path / "sweep")]
    result = CliRunner().invoke(cli, [*arguments, *(f"--set={s}" for s in settings)])
    assert result.exit_code == 0, result.output
    header = next(line for line in result.stdout.splitlines() if line.startswith("| model"))
    assert "| val R@1[IoU>=0.5] |" in header
    assert "| val NDCG@20[IoU>=0.5] |" in header
    assert header in (tmp_path / "sweep" / "table.md").read_text()


def test_sweep_resumes_after_ctrl_c_during_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: TrainingLine, progress: TrainingProgress) -> None:
        if progress.step == 1 and progress.doing == "validated":
            signal.raise_signal(signal.SIGINT)

    simulate(tmp_path / "data", SimulationSettings(videos=16, queries=30, seed=0, video_dim=12, text_dim=8))
    arguments = ["sweep", "xml", "--data", str(tmp_path / "data"), "--train", "train_top01"]
    arguments += ["--out", str(tmp_path / "sweep")]
    arguments += [f"--set={s}" for s in ("hidden=8", "heads=2", "steps=1", "batch=6", "max_clips=40")]
    report = tmp_path / "sweep" / "xml" / "train_top01" / "seed-0" / "report.json"
    monkeypatch.setattr(TrainingLine, "__call__", interrupt)
    stopped = CliRunner().invoke(cli, arguments)
    assert stopped.exit_code == 130
    assert "stopped and saved; the same command continues" in stopped.stderr
    assert not report.exists()
    monkeypatch.undo()
    went_on = CliRunner().invoke(cli, arguments)
    assert went_on.exit_code == 0, went_on.output
    assert json.loads(report.read_text())["stopped"] == "done"
