from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.ranking import best_spans, span_grid


def all_spans(start, end, shortest, longest, mask):
    """Every span by a loop: (first, last) -> score."""
    found = {}
    for a in range(len(start)):
        for b in range(a, len(start)):
            if shortest <= b - a + 1 <= longest and all(mask[a : b + 1]):
                found[a, b] = start[a] + end[b]
    return found


small = st.integers(-3, 3).map(float)
cases = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(small, min_size=n, max_size=n),
        st.lists(small, min_size=n, max_size=n),
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.integers(1, 6),
        st.integers(0, 6),
        st.integers(1, 30),
    )
)


@given(cases)
def test_best_spans_equal_a_loop_over_all(case):
    start, end, mask, shortest, more, k = case
    longest = shortest + more
    grid = span_grid(np.array(start), np.array(end), shortest, longest, np.array(mask))
    assert grid.shape == (len(start), more + 1)
    found = best_spans(grid, k, shortest)
    rows = [r for r in zip(*(x.tolist() for x in found), strict=True) if r[2] > -np.inf]
    truth = all_spans(start, end, shortest, longest, mask)
    wanted = sorted(truth.items(), key=lambda item: (-item[1], item[0]))[:k]
    assert rows == [(a, b, score) for (a, b), score in wanted]


def test_videos_are_processed_together():
    rng = np.random.default_rng(0)
    start, end = rng.standard_normal((2, 5, 7))
    mask = np.arange(7) < rng.integers(1, 8, 5)[:, None]
    together = best_spans(span_grid(start, end, 2, 4, mask), 6, 2)
    for i in range(5):
        alone = best_spans(span_grid(start[i], end[i], 2, 4, mask[i]), 6, 2)
        for mine, theirs in zip(together, alone, strict=True):
            assert mine[i].tolist() == theirs.tolist()


def test_padding_adds_no_span():
    start, end = np.array([0.0, 1.0, 2.0]), np.array([3.0, 1.0, 0.5])
    short = best_spans(span_grid(start, end, 1, 3), 6)
    padded = np.concatenate([start, [99.0, 99.0]]), np.concatenate([end, [99.0, 99.0]])
    long = best_spans(span_grid(*padded, 1, 3, np.arange(5) < 3), 6)
    assert [x.tolist() for x in short] == [x.tolist() for x in long]


def test_single_precision_stays_single():
    zeros = np.zeros(4, np.float32)
    assert span_grid(zeros, zeros, 1, 2).dtype == np.float32


def test_rejects_impossible_lengths():
    with pytest.raises(ValueError, match="spans of 3 to 2 clips"):
        span_grid(np.zeros(4), np.zeros(4), 3, 2)
