from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.moments.moment import iou
from momentseek.core.ranking import suppress


def by_loop(start, end, threshold, limit, video):
    kept = []
    for i in range(len(start)):
        near = any(video[i] == video[j] and float(iou(start[i], end[i], start[j], end[j])) > threshold for j in kept)
        if not near and (limit is None or len(kept) < limit):
            kept.append(i)
    return [i in kept for i in range(len(start))]


moments = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(0, 2)), min_size=1, max_size=12)


@given(moments, st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), st.none() | st.integers(1, 5), st.booleans())
def test_suppression_equals_a_loop(rows, threshold, limit, several):
    start = np.array([1.5 * s for s, _, _ in rows])
    end = start + np.array([1.5 * n for _, n, _ in rows])
    video = np.array([v if several else 0 for _, _, v in rows])
    kept = suppress(start, end, threshold, limit, video if several else None)
    assert kept.tolist() == by_loop(start, end, threshold, limit, video)


@given(st.integers(0, 2**32 - 1), st.none() | st.integers(1, 4))
def test_parallel_lists_are_independent(seed, limit):
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 8, (4, 9)).astype(float)
    end = start + rng.integers(1, 6, (4, 9))
    video = rng.integers(0, 2, (4, 9))
    together = suppress(start, end, 0.4, limit, video)
    alone = [suppress(s, e, 0.4, limit, v) for s, e, v in zip(start, end, video, strict=True)]
    assert together.tolist() == [a.tolist() for a in alone]


def test_overlap_equal_to_the_threshold_stays():
    assert suppress([0, 0], [10, 5], 0.5).tolist() == [True, True]
    assert suppress([0, 0], [10, 5.1], 0.5).tolist() == [True, False]


def test_no_moments():
    assert suppress(np.zeros(0), np.zeros(0)).tolist() == []
    assert suppress(np.zeros((2, 0)), np.zeros((2, 0))).tolist() == [[], []]
