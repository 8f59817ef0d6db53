from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from momentseek.models.layers.spans import inside, span_grid


@given(clips=st.integers(1, 9), shortest=st.integers(1, 12), more=st.integers(0, 12), seed=st.integers(0, 99))
def test_grid_holds_every_span_once(clips: int, shortest: int, more: int, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    start, end = torch.randn(2, 2, clips, generator=rng)
    end[1, clips // 2 :] = -torch.inf
    longest = shortest + more
    grid = span_grid(start, end, shortest, longest)
    assert grid.shape == (2, clips, more + 1)
    for row in range(2):
        for s in range(clips):
            for w in range(more + 1):
                e = s + shortest - 1 + w
                expected = float(start[row, s] + end[row, e]) if e < clips else -math.inf
                assert grid[row, s, w].item() == expected


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4))
def test_inside_is_from_start_to_end(spans: list[tuple[int, int]]) -> None:
    start, end = torch.tensor(spans).T
    found = inside(start, end, 10)
    for row, (s, e) in enumerate(spans):
        assert found[row].tolist() == [s <= i <= e for i in range(10)]
