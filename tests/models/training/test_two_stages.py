"""Retrieval, then re-ranking: one model finds videos, another finds moments in them (TVR, Table 3)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import write_run
from momentseek.models.features.data import Data, Dims
from momentseek.models.inference.prediction import predict
from momentseek.models.registry import build
from momentseek.models.training import checkpoint
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.loop import train
from momentseek.models.training.prediction import first_stage_run

SECOND = {
    "mcn": {},
    "cal": {},
    "tef-only": {},
    "excl": {},
    "conquer": {"heads": 2, "feedforward": 12, "clusters": 2, "head": 4, "negatives": 1},
}


def config(model: str, first: Path | None = None, **settings: object) -> TrainConfig:
    size = {"name": model, "hidden": 8, "max_clips": 40, "fit": "resample", "videos": 4, **settings}
    training = {"batch": 6, "steps": 2, "validate_every": 2, "lr": 0.003, "report": ["NDCG@20[IoU>=0.5]"]}
    if model == "mee":
        training |= {"task": "VR", "measure": "R@1[task=VR]", "report": ["R@5[task=VR]"]}
    data = {"train": "train_top01", "validate": "val"} | ({} if first is None else {"first_stage": str(first)})
    return TrainConfig.of({"model": size, "training": training, "data": data})


@pytest.fixture(scope="module")
def retrieval(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mee") / "run"
    with Data.open(simulated) as data:
        train(config("mee"), data, out)
    return out


@pytest.mark.parametrize("model", SECOND)
def test_moments_come_from_the_videos_of_the_first_stage(
    corpus: Data, retrieval: Path, tmp_path: Path, model: str
) -> None:
    train(config(model, retrieval, **SECOND[model]), corpus, tmp_path / "run")
    found = first_stage_run(str(retrieval), corpus, "val", 4)
    again = load_checkpoint(tmp_path / "run").model
    run = predict(again, corpus, "val", videos=found)
    for query in corpus.split("val").truth.query_ids:
        theirs = {found.videos[v] for v in found.video[found.rows(query)]}
        ours = {run.videos[v] for v in run.video[run.rows(query)]}
        assert ours
        assert ours <= theirs


@pytest.mark.parametrize("model", ["excl", "conquer"])
def test_without_a_first_stage_it_is_asked_for(corpus: Data, tmp_path: Path, model: str) -> None:
    with pytest.raises(MomentseekError, match="first_stage"):
        train(config(model, None, **SECOND[model]), corpus, tmp_path / "run")


def test_a_first_stage_for_other_features_is_refused(corpus: Data, tmp_path: Path) -> None:
    other = config("xml", heads=2)
    model = build("xml", other.settings, Dims(8, 10, 8))
    checkpoint.save_checkpoint(tmp_path / "other.safetensors", model, other, "", 0, None)
    with pytest.raises(MomentseekError, match=r"video features have 12 columns and .*other\.safetensors"):
        train(config("excl", tmp_path / "other.safetensors"), corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_first_stage_that_ranks_no_videos_is_refused(corpus: Data, retrieval: Path, tmp_path: Path) -> None:
    train(config("excl", retrieval), corpus, tmp_path / "excl")
    with pytest.raises(MomentseekError, match="excl ranks no videos"):
        train(config("excl", tmp_path / "excl"), corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("given", "missing"), [("val", "test"), ("test", "val")])
def test_a_first_stage_is_needed_for_every_measured_split(
    corpus: Data, retrieval: Path, tmp_path: Path, given: str, missing: str
) -> None:
    """It is said before the first step, not when the report is due."""
    source = tmp_path / "first.jsonl"
    write_run(predict(load_checkpoint(retrieval).model, corpus, given, task="VR", k=4), source)
    with pytest.raises(MomentseekError, match=f"of split {missing}"):
        train(config("excl", source).with_changes(["test=test"]), corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_videos_from_outside_the_corpus_are_refused(corpus: Data, retrieval: Path, tmp_path: Path) -> None:
    run = predict(load_checkpoint(retrieval).model, corpus, "val", task="VR", k=4)
    write_run(replace(run, videos=("elsewhere", *run.videos[1:])), tmp_path / "first.jsonl")
    with pytest.raises(MomentseekError, match="elsewhere is not in the corpus"):
        train(config("excl", tmp_path / "first.jsonl"), corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_that_ranks_no_videos_is_not_measured_by_them(corpus: Data, retrieval: Path, tmp_path: Path) -> None:
    by_videos = config("excl", retrieval).with_changes(["task=VR", "measure=R@1[task=VR]", "report=[]"])
    with pytest.raises(MomentseekError, match="excl ranks no videos"):
        train(by_videos, corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_videos_are_found_once_per_split(
    corpus: Data, retrieval: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(source: str, data: Data, split: str, depth: int) -> Run:
        asked.append(split)
        return first_stage_run(source, data, split, depth)

    monkeypatch.setattr("momentseek.models.training.prediction.first_stage_run", counted)
    train(config("excl", retrieval).with_changes(["test=test"]), corpus, tmp_path / "run")
    assert asked == ["val", "test"]
