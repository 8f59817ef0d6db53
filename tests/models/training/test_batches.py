from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from momentseek.models.features.data import Data
from momentseek.models.inputs import clips_of, dims_of, words_of
from momentseek.models.training.batches import Batches
from momentseek.models.training.config import TrainConfig


@pytest.fixture
def batches(corpus: Data, config: TrainConfig) -> Batches:
    return Batches(corpus, corpus.split("train_top20"), config.model_config, config.training)


CHOSEN = np.array([3, 100, 7, 41, 3 + 20])


def test_a_batch_holds_its_pairs(batches: Batches, corpus: Data, config: TrainConfig) -> None:
    batch, split = batches.batch(CHOSEN), corpus.split("train_top20")
    truth = split.truth
    queries = sorted({int(truth.row_query[i]) for i in CHOSEN})
    videos = sorted({int(truth.video[i]) for i in CHOSEN})
    words = words_of(split, [truth.query_ids[q] for q in queries], config.model_config)
    clips = clips_of(corpus, [truth.videos[v] for v in videos], config.model_config)
    assert torch.equal(batch.words.features, words.features)
    assert torch.equal(batch.words.mask, words.mask)
    assert clips.video is not None
    assert batch.clips.video is not None
    assert torch.equal(batch.clips.video, clips.video)
    assert torch.equal(batch.clips.mask, clips.mask)
    for n, pair in enumerate(CHOSEN):
        assert queries[int(batch.pairs.query[n])] == truth.row_query[pair]
        assert videos[int(batch.pairs.video[n])] == truth.video[pair]
        assert batch.pairs.positive[batch.pairs.query[n], batch.pairs.video[n]]


def test_labels_are_clips_of_the_moment(corpus: Data, config: TrainConfig) -> None:
    plain = config.with_changes(["max_clips=1000"])
    made = Batches(corpus, corpus.split("train_top20"), plain.model_config, plain.training).batch(CHOSEN).pairs
    truth = corpus.split("train_top20").truth
    for n, pair in enumerate(CHOSEN):
        rows = corpus.rows(truth.videos[truth.video[pair]])
        first = min(math.floor(truth.start[pair] / 1.5), rows - 1)
        assert int(made.start[n]) == first
        assert int(made.end[n]) == max(first, min(math.ceil(truth.end[pair] / 1.5) - 1, rows - 1))
    assert made.times is not None
    assert ((made.times[:, 0] < made.times[:, 1]) & (made.times <= 1).all(1)).all()


def test_positives_come_from_the_whole_training_set(batches: Batches, corpus: Data) -> None:
    """Not only from the pairs drawn: query i and video j are related though their pair is not in the batch."""
    truth = corpus.split("train_top20").truth
    mine = np.arange(truth.offsets[0], truth.offsets[1])
    one = mine[0]
    other_query = next(
        i
        for i in range(len(truth.video))
        if truth.row_query[i] != 0 and truth.video[i] in truth.video[mine[1:]] and truth.video[i] != truth.video[one]
    )
    batch = batches.batch(np.array([one, other_query]))
    assert batch.pairs.positive[batch.pairs.query[0], batch.pairs.video[1]]


def test_dims_are_the_datas_and_leave_out_what_is_not_seen(corpus: Data, config: TrainConfig) -> None:
    both = dims_of(corpus, config.model_config)
    assert (both.query, both.video, both.subtitle) == (8, 12, 8)
    assert dims_of(corpus, config.with_changes(["modalities=subtitle"]).model_config).video is None


def test_a_small_cache_changes_nothing(batches: Batches, corpus: Data, config: TrainConfig) -> None:
    small = config.with_changes(["cache_mb=0.002"])
    other = Batches(corpus, corpus.split("train_top20"), small.model_config, small.training)
    for _ in range(2):
        assert torch.equal(batches.batch(CHOSEN).words.features, other.batch(CHOSEN).words.features)
