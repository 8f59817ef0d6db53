from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from momentseek.models.batch import Batch
from momentseek.models.losses import related_masks
from momentseek.models.zoo.reloclnet import mil_nce


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "public-code"])
def test_mil_nce_is_the_papers_formula(make_batch: Callable[..., Batch], masked: bool) -> None:
    pairs = make_batch(5, 4, 8).pairs
    scores = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    values = mil_nce(scores, pairs, related_masks(pairs, masked=masked))
    for i, (q, v) in enumerate(zip(pairs.query.tolist(), pairs.video.tolist(), strict=True)):
        positives = {(q, j) for j in range(4) if (pairs.positive[q, j] if masked else j == v)}
        rows = {(q, j) for j in range(4)} - positives
        columns = {(z, v) for z in range(5) if z != q and not (masked and pairs.positive[z, v])}
        top = sum(math.exp(scores[p].item()) for p in positives)
        bottom = top + sum(math.exp(scores[p].item()) for p in rows | columns)
        assert values[i].item() == pytest.approx(-math.log(top / bottom), rel=1e-5)


def test_large_scores_stay_finite(make_batch: Callable[..., Batch]) -> None:
    pairs = make_batch(5, 4, 8).pairs
    scores = (torch.randn(5, 4) * 1e4).requires_grad_()
    total = mil_nce(scores, pairs, related_masks(pairs)).sum()
    total.backward()  # type: ignore[no-untyped-call]
    assert torch.isfinite(total)
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()


def test_the_public_code_counts_a_pair_twice(make_batch: Callable[..., Batch]) -> None:
    pairs = make_batch(5, 4, 8).pairs
    scores = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    known = related_masks(pairs, masked=False)
    once, twice = mil_nce(scores, pairs, known), mil_nce(scores, pairs, known, pair_once=False)
    own = scores[pairs.query, pairs.video]
    torch.testing.assert_close(twice, torch.logaddexp(once + own, own) - own)
