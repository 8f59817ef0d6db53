"""G2L: its contrast written out as loops, with hard and with plain negatives."""

from __future__ import annotations

import math

import pytest
import torch

from momentseek.models.zoo.g2l import geodesic_contrast, official_interaction

OWN = torch.tensor([[0.8, 0.5, -0.2, 0.1]], dtype=torch.float64)
OTHERS = torch.tensor([[[-math.inf] * 4, [0.3, 0.2, -0.4, 0.0]]], dtype=torch.float64)
NEAR = torch.tensor([[1.0, 0.7, 0.0, 0.6]], dtype=torch.float64)
WRONG = torch.tensor([[False, False, True, True]])
BESIDE = torch.tensor([[1.0, 0.6, 0.1, 0.4]], dtype=torch.float64)


@pytest.mark.parametrize("hard", [True, False])
def test_near_moments_are_weighed_and_wrong_ones_that_are_near_are_harder(hard: bool) -> None:
    found = geodesic_contrast(OWN, OTHERS, NEAR, WRONG, BESIDE if hard else None, 2, 0.5)
    own, near, beside, other = OWN[0].tolist(), NEAR[0].tolist(), BESIDE[0].tolist(), OTHERS[0, 1].tolist()
    against = 0.0
    for j in (2, 3):
        against += math.exp(own[j] / 0.5) * ((1 + near[j]) * math.exp(beside[j]) if hard else 1.0)
    mean = sum(other) / 4
    against += sum(math.exp(x / 0.5) for x in other if not hard or x > mean)
    total = 0.0
    for k in (0, 1):
        right = math.exp(own[k] / 0.5)
        total -= near[k] * math.log(right / (right + against))
    assert found.item() == pytest.approx(total / 1.7)


def test_a_query_without_negatives_has_nothing_to_lose() -> None:
    nothing = torch.full_like(OTHERS, -math.inf)
    found = geodesic_contrast(OWN, nothing, NEAR, torch.zeros_like(WRONG), BESIDE, 2, 0.5)
    assert found.item() == pytest.approx(0.0, abs=1e-9)


def test_the_public_game_equals_masked_vectors_one_by_one() -> None:
    g = torch.Generator().manual_seed(0)
    said, seen = (torch.nn.functional.normalize(torch.randn(n, 3, generator=g).double(), dim=1) for n in (2, 4))

    def value(sentences: torch.Tensor, moments: torch.Tensor) -> float:
        share = (sentences @ moments.T).softmax(1)
        return float(share.max(0).values.mean() + share.max(1).values.mean()) / 2

    def without(rows: torch.Tensor, row: int) -> torch.Tensor:
        return rows.index_fill(0, torch.tensor([row]), -1e9)

    labels = [
        value(said, seen) - value(said, without(seen, i)) + value(without(said, j), seen)
        - value(without(said, j), without(seen, i))
        for i in range(4) for j in range(2)
    ]  # fmt: skip
    length = math.sqrt(sum(x * x for x in labels))
    chances = (said @ seen.T).softmax(1).flatten().tolist()
    expected = -sum(x / length * math.log(a) for x, a in zip(labels, chances, strict=True)) / 4 * 2
    assert official_interaction(said, seen).item() == pytest.approx(expected)
