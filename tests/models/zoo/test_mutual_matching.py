"""Mutual matching against its formula, written out pair by pair."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from momentseek.models.batch import BatchPairs
from momentseek.models.layers.moment_map import cells, overlap, overlap_of_moments
from momentseek.models.zoo.mmn import mutual_matching

TAU, PSI, LOW = 0.2, 0.3, 0.5


def example(seed: int) -> tuple[torch.Tensor, torch.Tensor, BatchPairs, torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    queries = F.normalize(torch.randn(5, 6, generator=g, dtype=torch.float64), dim=1)
    candidates = cells(4)
    moments = F.normalize(torch.randn(3, len(candidates), 6, generator=g, dtype=torch.float64), dim=2)
    query, video = torch.tensor([0, 1, 2, 3, 4, 0]), torch.tensor([0, 0, 0, 1, 2, 2])
    start = torch.rand(6, generator=g, dtype=torch.float64) * 0.6
    times = torch.stack([start, start + 0.3], 1)
    positive = torch.zeros(5, 3, dtype=torch.bool)
    positive[query, video] = True
    weight = torch.rand(6, generator=g, dtype=torch.float64) + 0.1
    pairs = BatchPairs(query, video, query, query, weight, positive, times)
    return queries, moments, pairs, overlap(candidates, times), ~positive


def by_hand(queries, moments, pairs, iou, negative, positives):  # type: ignore[no-untyped-def]
    total = weights = 0.0
    truths = overlap_of_moments(pairs.times, pairs.times)
    for p in range(len(pairs.query)):
        q, v, w = int(pairs.query[p]), int(pairs.video[p]), float(pairs.weight[p])
        for cell in iou[p].topk(positives).indices.tolist():
            m = moments[v, cell]
            right = math.exp((float(m @ queries[q]) - PSI) / TAU)
            among_moments = 0.0
            for other in range(len(moments)):
                for c in range(moments.shape[1]):
                    if (other == v and iou[p, c] < LOW) or (other != v and negative[q, other]):
                        among_moments += math.exp(float(moments[other, c] @ queries[q]) / TAU)
            among_queries = 0.0
            for r in range(len(queries)):
                of_r = [x for x in range(len(pairs.query)) if pairs.query[x] == r and pairs.video[x] == v]
                held = all(truths[p, x] < LOW for x in of_r) if of_r else bool(negative[r, v])
                held &= r != q
                among_queries += held * math.exp(float(queries[r] @ m) / TAU)
            total -= w * (math.log(right / (right + among_moments)) + math.log(right / (right + among_queries)))
            weights += w
    return total / weights


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("positives", [1, 3])
def test_equals_the_formula_in_loops(seed: int, positives: int) -> None:
    queries, moments, pairs, iou, negative = example(seed)
    ours = mutual_matching(
        queries, moments, pairs, iou, negative, temperature=TAU, margin=PSI, negative_overlap=LOW, positives=positives
    )
    assert float(ours) == pytest.approx(by_hand(queries, moments, pairs, iou, negative, positives), rel=1e-9)


def test_without_negatives_the_loss_is_nothing_and_its_gradient_finite() -> None:
    queries = torch.ones(1, 2, requires_grad=True)
    pairs = BatchPairs(*(torch.zeros(1, dtype=torch.long) for _ in range(4)), torch.ones(1), torch.ones(1, 1).bool(),
                       torch.tensor([[0.0, 1.0]]))  # fmt: skip
    loss = mutual_matching(queries, torch.ones(1, 1, 2), pairs, torch.ones(1, 1), torch.zeros(1, 1).bool())
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0)
    assert torch.isfinite(queries.grad).all()
