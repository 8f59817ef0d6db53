"""MVMR end to end: predict in each query's pool and evaluate by the protocol, with one model or two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from momentseek.benchmarks.simulation.film_corpus import simulate_grounding
from momentseek.benchmarks.simulation.films import GroundingSettings
from momentseek.cli import cli
from momentseek.measuring import formats
from momentseek.measuring.evaluate import evaluate
from momentseek.models.features.data import Data, Dims
from momentseek.models.inference.prediction import predict
from momentseek.models.registry import build
from momentseek.models.training.checkpoint import load_checkpoint, save_checkpoint
from momentseek.models.training.prediction import Validation
from momentseek.models.training.presets import configure

SMALL = ["hidden=8", "max_clips=8", "longest=8", "map_layers=1", "kernel=3", "videos=3", "nms=0.45"]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films") / "data"
    simulate_grounding(folder, GroundingSettings(videos=150, pool=8, video_dim=16, text_dim=12))
    return folder


def checkpoint(films: Path, out: Path, name: str, *settings: str) -> Path:
    """A model with random weights, like a training run without any step."""
    config = configure({}, name, [*SMALL, "fit=stretch", "modalities=video", "task=SVMR", "report=[]", *settings])
    torch.manual_seed(0)
    save_checkpoint(out, build(name, config.settings, Dims(12, 16, None)), config, "", 0, None)
    return out


@pytest.fixture(scope="module")
def mmn(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(films, tmp_path_factory.mktemp("mmn") / "best.safetensors", "mmn", "space=8")


@pytest.fixture(scope="module")
def tan2d(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(films, tmp_path_factory.mktemp("tan2d") / "best.safetensors", "tan2d", "text_layers=1")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def pools_of(films: Path) -> dict[str, set[str]]:
    truth = formats.read_truth(films / "mvmr.json")
    assert truth.pools is not None
    names = [truth.videos[v] for v in truth.pools.video]
    edges = truth.pools.offsets.tolist()
    return {q: set(names[a:b]) for q, a, b in zip(truth.query_ids, edges, edges[1:], strict=False)}


def searched(run_file: Path) -> dict[str, set[str]]:
    found = formats.read_run(run_file)
    return {q: {found.videos[v] for v in found.video[found.rows(q)]} for q in found.query_ids}


@pytest.mark.parametrize("model", ["mmn", "tan2d"])
def test_predicts_and_evaluates_pools(films: Path, tmp_path: Path, model: str, request: pytest.FixtureRequest) -> None:
    """Even though the models were trained for known videos."""
    target = tmp_path / "mvmr.jsonl"
    weights = request.getfixturevalue(model)
    result = run("predict", weights, "--data", films, "--split", "mvmr", "--out", target, "--json", "-q")
    assert result.exit_code == 0, result.output
    about = json.loads(result.stdout)
    assert (about["task"], about["pools"]) == ("VCMR", True)
    found, pools = formats.read_run(target), pools_of(films)
    assert set(found.counts.tolist()) == {50}
    assert all(videos <= pools[q] for q, videos in searched(target).items())
    with Data.open(films) as data:
        expected = predict(load_checkpoint(weights).model, data, "mvmr", k=50, nms=0.45)
    assert found.start.tolist() == pytest.approx(expected.start.tolist())
    result = run("evaluate", target, "--truth", films / "mvmr.json", "--protocol", "mvmr", "--json")
    assert result.exit_code == 0, result.output
    assert (
        evaluate(expected, formats.read_truth(films / "mvmr.json"), "R@50[IoU>=0.3]", protocol="mvmr").means[
            "R@50[IoU>=0.3]"
        ]
        > 0
    )


def test_second_model_searches_the_first_models_videos(films: Path, mmn: Path, tan2d: Path, tmp_path: Path) -> None:
    """A checkpoint, its ranked videos, and the moments it finds in the pools give the same videos."""
    base = ["--data", films, "--split", "mvmr"]
    videos, moments = tmp_path / "videos.jsonl", tmp_path / "moments.jsonl"
    assert run("predict", mmn, *base, "--task", "VR", "--out", videos).exit_code == 0
    assert run("predict", mmn, *base, "--out", moments, "-k", 500).exit_code == 0
    found = []
    for i, source in enumerate((mmn, videos, moments)):
        target = tmp_path / f"{i}.jsonl"
        result = run("predict", tan2d, *base, "--videos", source, "--first", 2, "--out", target)
        assert result.exit_code == 0, result.output
        found.append(target.read_text())
    assert found[0] == found[1] == found[2]
    assert {len(v) for v in searched(tmp_path / "0.jsonl").values()} == {2}
    result = run("predict", tan2d, *base, "--videos", mmn, "--out", tmp_path / "as-trained.jsonl")
    assert result.exit_code == 0, result.output
    assert {len(v) for v in searched(tmp_path / "as-trained.jsonl").values()} == {3}


def test_queries_with_fewer_videos_are_counted(films: Path, mmn: Path, tan2d: Path, tmp_path: Path) -> None:
    base = ["--data", films, "--split", "mvmr"]
    videos = tmp_path / "videos.jsonl"
    assert run("predict", mmn, *base, "--task", "VR", "--out", videos).exit_code == 0
    lists: dict[str, list[str]] = {}
    for line in videos.read_text().splitlines(keepends=True):
        lists.setdefault(json.loads(line)["query_id"], []).append(line)
    shorter = tmp_path / "shorter.jsonl"
    shorter.write_text("".join(line for i, lines in enumerate(lists.values()) for line in lines[: 1 if i < 2 else 8]))
    asked = ["predict", tan2d, *base, "--videos", shorter, "--json"]
    result = run(*asked, "--first", 3, "--out", tmp_path / "a.jsonl")
    assert json.loads(result.stdout)["queries_with_fewer_videos"] == 2
    assert f"note: 2 of {len(lists):,} queries searched fewer than 3 videos: " in result.stderr
    result = run(*asked, "--first", 1, "--out", tmp_path / "b.jsonl")
    assert json.loads(result.stdout)["queries_with_fewer_videos"] == 0
    assert "note" not in result.stderr
    result = run("predict", mmn, *base, "--first", 9, "--out", tmp_path / "c.jsonl")
    assert f"note: {len(lists):,} of {len(lists):,} queries searched fewer than 9 videos: the pool had" in result.stderr


def test_whole_corpus_option(films: Path, mmn: Path, tan2d: Path, tmp_path: Path) -> None:
    base = ["--data", films, "--split", "mvmr", "--whole-corpus"]
    target = tmp_path / "all.jsonl"
    result = run("predict", mmn, *base, "--out", target, "--json", "-q")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["pools"] is False
    pools = pools_of(films)
    assert any(videos - pools[q] for q, videos in searched(target).items())
    refused = tmp_path / "refused.jsonl"
    assert "does not rank videos" in str(run("predict", tan2d, *base, "--out", refused).exception)
    assert "let it write a run" in str(run("predict", tan2d, *base, "--videos", mmn, "--out", refused).exception)
    result = run("predict", tan2d, *base, "--videos", target, "--out", refused, "--first", 1)
    assert result.exit_code == 0, result.output


def test_rejects_first_if_videos_are_known(films: Path, mmn: Path, tmp_path: Path) -> None:
    base = ["--data", films, "--split", "mvmr", "--out", tmp_path / "x.jsonl"]
    assert "leave out --first" in str(run("predict", mmn, *base, "--task", "SVMR", "--first", 2).exception)


def test_training_measures_pools_too(films: Path, mmn: Path) -> None:
    """A model that is validated on pools is selected by its results in the pools."""
    found = load_checkpoint(mmn)
    measure = "R@5[IoU>=0.3]"
    config = configure({}, "mmn", [*SMALL, "space=8", "task=VCMR", "validate=mvmr", f"measure={measure}", "report=[]"])
    with Data.open(films) as data:
        value = Validation(config, data).value(found.model)
        direct = predict(found.model, data, "mvmr", k=40, nms=0.45)
        assert value == evaluate(direct, data.split("mvmr").truth, measure).means[measure]
