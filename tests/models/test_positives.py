from __future__ import annotations

from collections.abc import Callable

import torch

from momentseek.models.batch import Batch, BatchPairs
from momentseek.models.losses import related_masks


def test_mask_holds_what_the_training_set_says(make_batch: Callable[..., Batch]) -> None:
    pairs = make_batch(5, 4, 8).pairs
    known = related_masks(pairs)
    for i, (q, v) in enumerate(zip(pairs.query.tolist(), pairs.video.tolist(), strict=True)):
        assert known.videos[i].tolist() == [bool(pairs.positive[q, other]) for other in range(4)]
        assert known.queries[i].tolist() == [bool(pairs.positive[other, v]) for other in range(5)]
    assert known.videos.sum() > 8


def test_without_mask_a_pair_knows_only_itself(make_batch: Callable[..., Batch]) -> None:
    pairs = make_batch(5, 4, 8).pairs
    known = related_masks(pairs, masked=False)
    assert known.videos.sum(1).tolist() == known.queries.sum(1).tolist() == [1] * 8
    assert known.videos.int().argmax(1).tolist() == pairs.video.tolist()


def test_a_pair_is_its_own_positive_even_if_the_table_forgot_it() -> None:
    one = torch.tensor([0])
    pairs = BatchPairs(one, one, one, one, torch.ones(1), torch.zeros(1, 2, dtype=torch.bool))
    assert related_masks(pairs).videos.tolist() == [[True, False]]
