from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from momentseek.benchmarks.simulation.corpus import simulate
from momentseek.benchmarks.simulation.settings import SimulationSettings
from momentseek.cli import cli
from momentseek.core.errors import MomentseekError
from momentseek.measuring import formats
from momentseek.models.features.data import Data, Dims
from momentseek.models.inference.prediction import predict
from momentseek.models.registry import build
from momentseek.models.training.checkpoint import load_checkpoint, save_checkpoint
from momentseek.models.training.loop import train
from momentseek.models.training.presets import configure


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated") / "data"
    simulate(folder, SimulationSettings(videos=16, queries=30, seed=0, video_dim=12, text_dim=8))
    return folder


@pytest.fixture(scope="module")
def trained(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    settings = ["hidden=8", "heads=2", "steps=1", "batch=4", "train=train_top01", "validate=val", "report=[]"]
    with Data.open(simulated) as data:
        train(configure({}, "xml", settings), data, out)
    return out


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def test_run_equals_the_models_predictions(simulated: Path, trained: Path, tmp_path: Path) -> None:
    target = tmp_path / "test.jsonl"
    result = run("predict", trained, "--data", simulated, "--split", "test", "--out", target, "--json", "-q")
    assert result.exit_code == 0, result.output
    about = json.loads(result.stdout)
    assert (about["model"], about["task"], about["simulated"]) == ("xml", "VCMR", True)
    with Data.open(simulated) as data:
        expected = predict(load_checkpoint(trained).model, data, "test", k=40)
    got = formats.read_run(target)
    assert got.query_ids == expected.query_ids
    assert [got.videos[v] for v in got.video] == [expected.videos[v] for v in expected.video]
    assert got.start.tolist() == pytest.approx(expected.start.tolist())
    assert about["moments"] == len(expected.start)


@pytest.mark.parametrize(("task", "most"), [("SVMR", 3), ("VR", 3)])
def test_other_tasks(simulated: Path, trained: Path, tmp_path: Path, task: str, most: int) -> None:
    target = tmp_path / "x.jsonl"
    result = run("predict", trained, "--data", simulated, "--split", "val", "--out", target, "--task", task, "-k", most)
    assert result.exit_code == 0, result.output
    assert formats.read_run(target).counts.max() <= most


def test_searches_another_models_videos(simulated: Path, trained: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    base = ["predict", trained, "--data", simulated, "--split", "val"]
    assert run(*base, "--task", "VR", "-k", 2, "--out", first).exit_code == 0
    assert run(*base, "--videos", first, "--out", second).exit_code == 0
    found, given = formats.read_run(second), formats.read_run(first)
    for query in found.query_ids:
        searched = {given.videos[v] for v in given.video[given.rows(query)]}
        assert {found.videos[v] for v in found.video[found.rows(query)]} <= searched


def test_errors_are_one_sentence(simulated: Path, trained: Path, tmp_path: Path) -> None:
    def error(*arguments: object) -> str:
        result = run("predict", *arguments)
        assert isinstance(result.exception, MomentseekError), result.output
        return str(result.exception)

    target, base = tmp_path / "x.jsonl", ["--data", simulated, "--split", "test", "--out"]
    assert "no such checkpoint" in error(tmp_path / "none", *base, target)
    assert "no split 'tset'" in error(trained, "--data", simulated, "--split", "tset", "--out", target)
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes((trained / "best.safetensors").read_bytes()[:5000])
    assert "is cut off" in error(cut, *base, target)
    assert "say which format to write" in error(trained, *base, tmp_path / "x.xyz")
    assert not target.exists()
    target.write_text("mine")
    assert "already exists" in error(trained, *base, target)


def test_rejects_data_of_another_encoder(trained: Path, tmp_path: Path) -> None:
    simulate(tmp_path / "other", SimulationSettings(videos=16, queries=30, seed=0, video_dim=10, text_dim=8))
    result = run("predict", trained, "--data", tmp_path / "other", "--split", "test", "--out", tmp_path / "x.jsonl")
    assert "video features have 10 columns" in str(result.exception)


def test_predict_and_evaluate_match_the_report(simulated: Path, tmp_path: Path) -> None:
    """With the default number of predictions (the depth of the run's own measures) and the default protocol."""
    names = ["R@1[IoU>=0.3]", "R@100[IoU>=0.3]", "NDCG@20[IoU>=0.3]", "NDCG@40[IoU>=0.3]"]
    settings = ["hidden=8", "heads=2", "steps=1", "batch=4", "train=train_top01", "test=test", f"report={names}"]
    with Data.open(simulated) as data:
        train(configure({}, "xml", settings), data, tmp_path / "run")
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    target = tmp_path / "test.jsonl"
    assert run("predict", tmp_path / "run", "--data", simulated, "--split", "test", "-o", target).exit_code == 0
    assert formats.read_run(target).counts.max() == 100
    measures = [word for name in names for word in ("-m", name)]
    result = run("evaluate", target, "--truth", simulated / "test.json", *measures, "--json")
    found = json.loads(result.stdout)
    assert found["protocol"] == report["protocol"] == "paper"
    got = {name: found["measures"][name] for name in names}
    assert got == pytest.approx(report["scores"]["test"], abs=1e-12)
    assert got["R@100[IoU>=0.3]"] > 0
    result = run(
        "evaluate", target, "--truth", simulated / "test.json", *measures, "--json", "--protocol", "tvr-ranking"
    )
    assert list(json.loads(result.stdout)["measures"].values()) != list(found["measures"].values())


@pytest.mark.parametrize("task", ["VR", "SVMR"])
def test_rejects_videos_for_tasks_without_search(simulated: Path, trained: Path, tmp_path: Path, task: str) -> None:
    target = tmp_path / "x.jsonl"
    base = ["predict", trained, "--data", simulated, "--split", "val", "--out", target, "--task", task]
    result = run(*base, "--videos", tmp_path / "nowhere.jsonl")
    assert f"{task} does not search" in str(result.exception)
    assert not target.exists()


def test_rejects_vr_with_a_model_that_ranks_no_videos(simulated: Path, trained: Path, tmp_path: Path) -> None:
    settings = ["hidden=8", "videos=4", "steps=1", "batch=4", "train=train_top01", "report=[]"]
    settings.append(f"first_stage={trained}")
    with Data.open(simulated) as data:
        train(configure({}, "excl", settings), data, tmp_path / "run")
    target = tmp_path / "x.jsonl"
    result = run("predict", tmp_path / "run", "--data", simulated, "--split", "val", "-o", target, "--task", "VR")
    assert "excl ranks no videos" in str(result.exception)
    assert not target.exists()
    result = run("predict", tmp_path / "run", "--data", simulated, "--split", "val", "-o", target)
    assert result.exit_code == 0, result.output


def test_rejects_a_first_stage_with_other_features(simulated: Path, trained: Path, tmp_path: Path) -> None:
    other = configure({}, "xml", ["hidden=8", "heads=2"])
    save_checkpoint(tmp_path / "other.safetensors", build("xml", other.settings, Dims(8, 10, 8)), other, "", 0, None)
    target = tmp_path / "x.jsonl"
    base = ["predict", trained, "--data", simulated, "--split", "val", "--out", target]
    result = run(*base, "--videos", tmp_path / "other.safetensors")
    assert "video features have 12 columns" in str(result.exception)
    assert not target.exists()
