from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from momentseek.models.losses import draw_negatives


@given(st.integers(0, 999), st.integers(1, 6), st.one_of(st.none(), st.integers(1, 8)))
def test_draws_are_allowed_and_among_the_hardest(seed: int, columns: int, pool: int | None) -> None:
    rng = torch.Generator().manual_seed(seed)
    scores = torch.rand(7, columns, generator=rng)
    allowed = torch.rand(7, columns, generator=rng) < 0.6
    column, found = draw_negatives(scores, allowed, pool, rng)
    for row in range(7):
        candidates = [j for j in range(columns) if allowed[row, j]]
        assert found[row] == bool(candidates)
        if candidates:
            hardest = sorted(candidates, key=lambda j: -scores[row, j].item())[: pool or columns]
            assert column[row].item() in hardest


def test_each_of_the_pool_is_drawn_as_often() -> None:
    scores = torch.arange(6.0).repeat(6000, 1)
    allowed = torch.tensor([True, True, True, True, True, False]).repeat(6000, 1)
    column, _ = draw_negatives(scores, allowed, 3, torch.Generator().manual_seed(0))
    counts = torch.bincount(column, minlength=6)
    assert counts[[0, 1, 5]].tolist() == [0, 0, 0]
    assert (counts[2:5] - 2000).abs().max() < 150  # 4 standard deviations


def test_same_seed_same_draw() -> None:
    scores, allowed = torch.rand(50, 9), torch.ones(50, 9, dtype=torch.bool)
    first, second = (draw_negatives(scores, allowed, None, torch.Generator().manual_seed(3))[0] for _ in range(2))
    assert torch.equal(first, second)
    assert len(first.unique()) > 5


def test_no_columns_nothing_found() -> None:
    column, found = draw_negatives(torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool), None, torch.Generator())
    assert column.tolist() == [0, 0]
    assert not found.any()
