"""Wrong videos from a first stage's lists, as CONQUER is trained."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from weights import same_weights

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import write_run
from momentseek.models.features.data import Data
from momentseek.models.inference.prediction import predict
from momentseek.models.inputs import dims_of
from momentseek.models.registry import build
from momentseek.models.training.batches import Batches
from momentseek.models.training.checkpoint import load_checkpoint
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.folder import TrainingProgress
from momentseek.models.training.loop import train
from momentseek.models.training.negatives import ListNegatives, allowed_videos, read_lists
from momentseek.models.training.pairs import ListOrder


def config(**data: str) -> TrainConfig:
    size = {"hidden": 8, "heads": 2, "feedforward": 12, "clusters": 2, "head": 4, "max_clips": 40, "fit": "resample"}
    training = {"batch": 6, "steps": 1, "validate_every": 1, "list_reach": 3, "task": "SVMR"}
    return TrainConfig.of(
        {
            "model": {"name": "conquer", "negatives": 2, **size},
            "training": training,
            "data": {"train": "train_top01", "validate": "val", **data},
        }
    )


def write_list(corpus: Data, path: Path) -> Path:
    """A run in which every training query lists all videos of the truth in the same order."""
    truth = corpus.split("train_top01").truth
    rows = [(q, v, 0.0, 1.0, 1.0 / (1 + i)) for q in truth.query_ids for i, v in enumerate(truth.videos)]
    write_run(Run.from_rows(rows), path)
    return path


def test_wrong_videos_come_from_near_the_right_one(corpus: Data, tmp_path: Path) -> None:
    """Any run is a list: videos are drawn down to three places below the right one, and never the right one."""
    chosen = config(lists=str(write_list(corpus, tmp_path / "list.jsonl")))
    split = corpus.split("train_top01")
    model = build("conquer", chosen.settings, dims_of(corpus, chosen.model_config, "train_top01"))
    batches = Batches(corpus, split, model.config, chosen.training)
    lists = read_lists(chosen, model, corpus, batches.pairs, lambda done, total: None)
    assert isinstance(lists, ListNegatives)
    right = {q: set(batches.pairs.video[batches.pairs.query == q].tolist()) for q in range(len(split.truth))}
    for query, allowed in enumerate(lists.allowed):
        last = max(right[query])
        assert set(allowed.tolist()) == set(range(min(last + 4, len(split.truth.videos)))) - right[query]
    batches.hard = lists
    batch = batches.batch(np.arange(5), np.random.default_rng(0))
    assert batch.pairs.hard_videos is not None
    assert not (batch.pairs.hard_videos & batch.pairs.positive).any()
    assert batch.pairs.hard_videos.sum(1).tolist() == [
        min(2, len(lists.allowed[q])) for q in np.unique(batches.pairs.query[:5])
    ]
    terms = model.loss(batch, 0, torch.Generator())
    assert all(bool(term.isfinite()) for term in terms.values())


def test_without_lists_they_are_asked_for(corpus: Data, tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="lists=PATH"):
        train(config(), corpus, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_list_without_the_training_queries_is_refused(corpus: Data, tmp_path: Path) -> None:
    truth = corpus.split("val").truth
    path = tmp_path / "val.jsonl"
    write_run(Run.from_rows([(q, truth.videos[0], 0.0, 1.0, 1.0) for q in truth.query_ids]), path)
    with pytest.raises(MomentseekError, match="whose wrong videos it should list"):
        train(config(lists=str(path)), corpus, tmp_path / "run")


def listed_training(**changes: object) -> TrainConfig:
    """A training by lists, short enough for a test."""
    model = {"name": "slate", "hidden": 8, "heads": 2, "longest": 6}
    training = {"batch": 6, "draw": "lists", "list_queries": 10, "steps": 5, "validate_every": 2, "lr": 0.003}
    data = {"train": "train_top20", "validate": "val"}
    table = {"model": model, "training": training | {"report": ["NDCG@20[IoU>=0.5]"]}, "data": data}
    return TrainConfig.of(table).with_changes(changes)


@pytest.mark.parametrize("changes", [{}, {"lambda_from": 1}, {"mined": 3}])
def test_training_by_lists_is_the_same_again_and_after_an_interruption(
    corpus: Data, tmp_path: Path, changes: dict[str, object]
) -> None:
    if "mined" in changes:
        truth = corpus.split("train_top20").truth
        rows = [(q, v, 0.0, 1.0, 1.0 / (1 + i)) for q in truth.query_ids for i, v in enumerate(truth.videos)]
        write_run(Run.from_rows(rows), tmp_path / "list.jsonl")
        changes = changes | {"lists": str(tmp_path / "list.jsonl")}
    config = listed_training(**changes)

    def stop(progress: TrainingProgress) -> None:
        if progress.step == 3 and progress.doing == "training":
            signal.raise_signal(signal.SIGINT)

    for name in ("one", "two"):
        train(config, corpus, tmp_path / name)
    assert train(config, corpus, tmp_path / "stopped", progress=stop).stopped == "interrupted"
    train(config, corpus, tmp_path / "stopped", resume=True)
    one, *others = (load_checkpoint(tmp_path / name / "last.safetensors") for name in ("one", "two", "stopped"))
    first = predict(one.model, corpus, "test")
    for other in others:
        assert same_weights(one.model, other.model)
        again = predict(other.model, corpus, "test")
        assert all(np.array_equal(getattr(first, c), getattr(again, c)) for c in ("video", "start", "end", "score"))


def test_mined_videos_come_with_all_their_pairs(corpus: Data) -> None:
    config = listed_training(mined=2)
    split = corpus.split("train_top20")
    batches = Batches(corpus, split, config.model_config, config.training)
    allowed = allowed_videos([np.arange(batches.pairs.videos)] * len(split.truth), batches.pairs, 1000)
    batches.hard = ListNegatives(allowed, 1, total=2)
    order = ListOrder(batches.pairs, 4, 10, seed=0)
    for index in range(order.per_epoch):
        chosen = order.batch_at(0, index)
        videos = np.unique(batches.pairs.video[chosen])
        batch = batches.batch(chosen, np.random.default_rng(index))
        assert len(videos) <= len(batch.clips) <= len(videos) + 2
        listed = torch.zeros_like(batch.pairs.positive)
        listed[batch.pairs.query, batch.pairs.video] = True
        assert torch.equal(listed, batch.pairs.positive)


def test_mining_needs_lists(corpus: Data, tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match=r"lists=PATH.*mined=0"):
        train(listed_training(mined=2), corpus, tmp_path / "run")
