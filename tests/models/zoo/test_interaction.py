from __future__ import annotations

import math

import pytest
import torch

from momentseek.models.zoo.g2l import interaction_loss, interactions


def value(table: list[list[float]], rows: list[int], columns: list[int]) -> float:
    """A coalition's value from its definition."""
    if not rows or not columns:
        return 0.0
    total = 0.0
    for lines, others, at in (
        (rows, columns, lambda i, j: table[i][j]),
        (columns, rows, lambda i, j: table[j][i]),
    ):
        best = 0.0
        for i in lines:
            e = [math.exp(at(i, j)) for j in others]
            best += max(e) / sum(e)
        total += best / len(lines)
    return total / 2


@pytest.mark.parametrize("sentences", [1, 2, 3])
def test_interactions_are_what_four_coalitions_are_worth(sentences: int) -> None:
    s = torch.randn(sentences, 4, generator=torch.Generator().manual_seed(sentences), dtype=torch.float64)
    table = s.tolist()
    found = interactions(s)
    labels = {}
    for i in range(sentences):
        for j in range(4):
            rows, columns = list(range(sentences)), list(range(4))
            fewer, less = [r for r in rows if r != i], [c for c in columns if c != j]
            worth = (
                value(table, rows, columns) - value(table, rows, less) - value(table, fewer, columns)
                + value(table, fewer, less)
            )  # fmt: skip
            assert found[i, j].item() == pytest.approx(worth)
            labels[i, j] = max(worth, 0.0)
    total = sum(labels.values())
    expected = 0.0
    for (i, j), label in labels.items():
        expected -= label / max(total, 1e-9) * math.log(math.exp(table[i][j]) / sum(map(math.exp, table[i])))
    assert interaction_loss(s).item() == pytest.approx(expected)
