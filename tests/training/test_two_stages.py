"""Retrieval, then re-ranking: one model finds videos, another finds moments in them (TVR, Table 3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from momentseek.errors import MomentseekError
from momentseek.features import Data
from momentseek.models.inference import predict
from momentseek.training import TrainConfig, load, train
from momentseek.training.validation import first_stage

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
    found = first_stage(str(retrieval), corpus, "val", 4)
    again = load(tmp_path / "run").model
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
