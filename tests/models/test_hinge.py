from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from momentseek.models.batch import Batch, BatchPairs
from momentseek.models.losses import ranking_hinge, related_masks


@pytest.mark.parametrize("masked", [True, False], ids=["masked", "public-code"])
def test_values_are_the_papers_formula_for_some_negative(make_batch: Callable[..., Batch], masked: bool) -> None:
    pairs = make_batch(5, 4, 8).pairs
    scores = torch.randn(5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    known = related_masks(pairs, masked=masked)
    seen: list[set[float]] = [set() for _ in range(16)]
    for seed in range(200):
        video, query = ranking_hinge(scores, pairs, known, 0.1, None, torch.Generator().manual_seed(seed))
        for i, value in enumerate([*video.tolist(), *query.tolist()]):
            seen[i].add(round(value, 5))
    for i, (q, v) in enumerate(zip(pairs.query.tolist(), pairs.video.tolist(), strict=True)):
        own = scores[q, v].item()

        def wrong(a: int, b: int, q: int = q, v: int = v) -> bool:
            return not pairs.positive[a, b] if masked else (a, b) != (q, v)

        videos = {round(max(0.0, 0.1 + scores[q, j].item() - own), 5) for j in range(4) if wrong(q, j)}
        queries = {round(max(0.0, 0.1 + scores[z, v].item() - own), 5) for z in range(5) if wrong(z, v)}
        assert seen[i] == videos
        assert seen[i + 8] == queries


def test_hardest_negative_with_a_pool_of_one(make_batch: Callable[..., Batch]) -> None:
    pairs = make_batch(5, 4, 8).pairs
    scores = torch.randn(5, 4, generator=torch.Generator().manual_seed(2))
    known = related_masks(pairs)
    video, _ = ranking_hinge(scores, pairs, known, 0.1, 1, torch.Generator())
    for i, (q, v) in enumerate(zip(pairs.query.tolist(), pairs.video.tolist(), strict=True)):
        worst = max(scores[q, j].item() for j in range(4) if not pairs.positive[q, j])
        assert video[i].item() == pytest.approx(max(0.0, 0.1 + worst - scores[q, v].item()), abs=1e-6)


def test_nothing_to_rank_costs_nothing() -> None:
    one = torch.tensor([0])
    pairs = BatchPairs(one, one, one, one, torch.ones(1), torch.ones(1, 1, dtype=torch.bool))
    scores = torch.zeros(1, 1, requires_grad=True)
    video, query = ranking_hinge(scores, pairs, related_masks(pairs), 0.1, None, torch.Generator())
    assert video.tolist() == query.tolist() == [0.0]
