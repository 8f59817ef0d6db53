"""Wrong videos from a first stage's lists, as CONQUER is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import write_run
from momentseek.models.features.data import Data
from momentseek.models.inputs import dims_of
from momentseek.models.registry import build
from momentseek.models.training.batches import Batches
from momentseek.models.training.config import TrainConfig
from momentseek.models.training.loop import train
from momentseek.models.training.negatives import ListNegatives, read_lists


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
