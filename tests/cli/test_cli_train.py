from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.cli import cli
from momentseek.cli.progress import TrainingLine, sentence
from momentseek.core.errors import MomentseekError
from momentseek.models.training.folder import TrainingProgress

SMALL = [f"--set={s}" for s in ("hidden=8", "heads=2", "steps=2", "batch=6", "validate_every=1", "max_clips=40")]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated") / "data"
    simulate(folder, SimulationSettings(videos=16, queries=30, seed=0, video_dim=12, text_dim=8))
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def error(*arguments: object) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, MomentseekError), result.output
    return str(result.exception)


def test_trains_a_model_with_progress(simulated: Path, tmp_path: Path) -> None:
    result = run("train", "xml", "--data", simulated, "--out", tmp_path / "run", *SMALL)
    assert result.exit_code == 0, result.output
    assert "training with the preset simulation" in result.stderr
    assert "step 1/2 (epoch" in result.stderr
    assert "wrong_video" in result.stderr
    assert "pairs/s" in result.stderr
    assert "NDCG@20[IoU>=0.5]" in result.stdout
    assert "a simulation" in result.stdout
    assert (tmp_path / "run" / "best.safetensors").is_file()
    assert "already holds a training run" in error(
        "train", "xml", "--data", simulated, "--out", tmp_path / "run", *SMALL
    )
    again = run("train", "xml", "--data", simulated, "--out", tmp_path / "run", "--force", "--json", "-q", *SMALL)
    assert json.loads(again.stdout)["steps"] == 2
    assert again.stderr == ""


def test_ctrl_c_saves_and_says_how_to_continue(
    simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: TrainingLine, progress: TrainingProgress) -> None:
        if progress.step == 1 and progress.doing == "training":
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TrainingLine, "__call__", interrupt)
    out = tmp_path / "run"
    stopped = run("train", "xml", "--data", simulated, "--out", out, *SMALL)
    assert stopped.exit_code == 130
    assert f"stopped at step 1 of 2 and saved; continue with: momentseek train --resume {out}" in stopped.stderr
    monkeypatch.undo()
    went_on = run("train", "--resume", out, "--json", "-q")
    assert json.loads(went_on.stdout)["stopped"] == "done"
    longer = run("train", "--resume", out, "--set", "steps=3", "--json", "-q")
    assert json.loads(longer.stdout)["steps"] == 3
    assert "was begun with model.hidden=8" in error("train", "--resume", out, "--set", "hidden=16")
    assert "leave out MODEL" in error("train", "xml", "--resume", out)
    assert "--out and --force" in error("train", "--resume", out, "--out", tmp_path / "other")
    assert "--out and --force" in error("train", "--resume", out, "--force")
    assert not (tmp_path / "other").exists()


def test_run_continues_from_another_folder(simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    monkeypatch.chdir(simulated.parent)
    assert run("train", "xml", "--data", simulated.name, "--out", out, "-q", *SMALL).exit_code == 0
    monkeypatch.chdir(tmp_path)
    result = run("train", "--resume", "run", "--set", "steps=3", "--json", "-q")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["steps"] == 3


def test_best_score_of_zero_is_kept(simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("momentseek.models.training.prediction.Validation.value", lambda *_: 0.0)
    result = run("train", "xml", "--data", simulated, "--out", tmp_path / "run", *SMALL)
    assert "best NDCG@20[IoU>=0.5] 0.0000 at step 1" in result.stderr


def test_seeds_give_mean_and_sd(simulated: Path, tmp_path: Path) -> None:
    result = run("train", "xml", "--data", simulated, "--out", tmp_path, "--seeds", 2, *SMALL)
    assert result.exit_code == 0, result.output
    assert "±" in result.stdout
    kept = json.loads((tmp_path / "seeds.json").read_text())
    assert kept["seeds"] == [0, 1]
    assert set(kept["scores"]["test"]["NDCG@20[IoU>=0.5]"]) == {"mean", "sd"}
    again = ("train", "xml", "--data", simulated, "--out", tmp_path, "--seeds", 2, *SMALL)
    assert "step 1/2" not in run(*again).stderr
    assert "step 1/2" in run(*again, "--force").stderr


def test_models_presets_and_settings_are_listed() -> None:
    listed = run("train", "--list").stdout
    assert "reloclnet" in listed
    assert "tvr-ranking-reloclnet" in listed
    assert "model.hidden" in run("train", "xml", "--list").stdout


def test_errors_are_one_sentence(simulated: Path, tmp_path: Path) -> None:
    assert "(--data)" in error("train", "xml")
    assert "no model is named" in error("train", "--data", simulated)
    assert "there is no model 'xlm'" in error("train", "xlm", "--data", simulated)
    assert "there is no such file" in error("train", "xml", "--data", tmp_path)
    assert "give one" in error("train", "xml", "--data", simulated, "--preset", "a", "--config", "b")
    assert "there is no split 'tain'" in error("train", "xml", "--data", simulated, "--set", "train=tain")
    assert "holds no training run" in error("train", "--resume", tmp_path)


def test_crocs_second_stage_starts_from_the_first(simulated: Path, tmp_path: Path) -> None:
    small = ("hidden=8", "space=8", "map_layers=1", "max_clips=6", "longest=6", "fit=stretch", "modalities=video",
             "steps=1", "batch=6", "task=SVMR", "train=train_top01", "measure=R@1[IoU>=0.5]", "report=[]")  # fmt: skip
    shared = ["--data", simulated, "-q", *(f"--set={s}" for s in small)]
    one, two = tmp_path / "one", tmp_path / "two"
    first = run("train", "crocs", "--out", one, "--seeds", 2, *shared)
    assert first.exit_code == 0, first.output
    hard = [f"--set=begin={one}/seed-{{seed}}", "--set=hard_videos=2", "--set=hard_queries=3"]
    second = run("train", "crocs", "--out", two, "--seeds", 2, *hard, *shared)
    assert second.exit_code == 0, second.output
    swept = run("sweep", "crocs", "--out", tmp_path / "swept", "--vary", "sharpness=1,50", *hard, *shared)
    assert swept.exit_code == 0, swept.output
    for folder in (two / "seed-1", tmp_path / "swept" / "crocs" / "train_top01" / "sharpness=50" / "seed-0"):
        report = json.loads((folder / "report.json").read_text())
        assert report["began_from"]["path"] == str(one / folder.name)
    again = run("train", "--resume", two / "seed-0", "--set=steps=2", "--json", "-q")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["steps"] == 2


def test_scoring_shows_progress() -> None:
    scoring = TrainingProgress(0, 9, 0.0, {}, None, None, 0.0, 0.0, "scoring", 0.254)
    assert sentence(scoring).endswith("negatives: 25%")
