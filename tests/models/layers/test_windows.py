from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.models.layers.spans import cell, fits, overlaps, window_squares

sizes = st.tuples(st.integers(1, 9), st.integers(1, 7), st.integers(0, 99))


@given(sizes)
@settings(deadline=None, max_examples=20)
def test_window_squares_are_those_of_each_span(size: tuple[int, int, int]) -> None:
    clips, longest, seed = size
    x = torch.randn(2, clips, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    squares = window_squares(x, longest)
    assert squares.shape == (2, clips, longest)
    for i in range(2):
        for s in range(clips):
            for w in range(min(longest, clips - s)):
                torch.testing.assert_close(squares[i, s, w], x[i, s : s + w + 1].sum(0).square().sum())


def test_far_from_the_beginning_nothing_is_lost() -> None:
    # A running total of a thousand clips would leave a difference of two of them few digits.
    x = torch.cat([torch.full((1, 1000, 1), 1000.0), torch.full((1, 1, 1), 1e-3)], 1)
    assert window_squares(x, 2)[0, 1000, 0] == x[0, 1000, 0].square()


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 10), st.integers(1, 3), st.integers(3, 6))
def test_the_cell_of_a_span_is_in_the_video(start: int, length: int, count: int, shortest: int, longest: int) -> None:
    count = max(count, shortest)
    inside = fits(torch.arange(12)[None] < count, shortest, longest)
    first, column = cell(
        torch.tensor([start]), torch.tensor([start + length]), torch.tensor([count]), shortest, longest
    )
    assert inside[0, first, column]
    if shortest <= length + 1 <= longest and start + length < count:
        assert (first.item(), column.item()) == (start, length + 1 - shortest)


def test_overlaps_are_intersection_over_union_of_clips() -> None:
    start, end = torch.tensor([2, 0]), torch.tensor([4, 0])
    found = overlaps(start, end, 6, 2, 3)
    for i in range(2):
        true = set(range(int(start[i]), int(end[i]) + 1))
        for s in range(6):
            for w in range(2):
                span = set(range(s, s + 2 + w))
                assert found[i, s, w] == torch.tensor(len(span & true) / len(span | true))
