from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from momentseek.core.ranking import Running, top, top_videos

few_values = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0])
"""Few, so that ties are everywhere."""


def expected(row, k):
    order = sorted((i for i in range(len(row)) if row[i] > -np.inf), key=lambda i: (-row[i], i))[:k]
    return order, [row[i] for i in order]


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=few_values), st.integers(0, 14))
def test_top_is_a_stable_sort(values, k):
    places, best = top(values, k)
    assert places.shape == best.shape == (len(values), min(k, values.shape[1]))
    for row, p, b in zip(values, places, best, strict=True):
        finite = b > -np.inf
        assert (p[finite].tolist(), b[finite].tolist()) == expected(row, k)
        assert sorted(finite.tolist(), reverse=True) == finite.tolist()
        assert len(set(p.tolist())) == len(p)


def test_top_of_a_vector_and_of_deeper_arrays():
    assert top(np.array([1.0, 3.0, 2.0]), 2)[0].tolist() == [1, 2]
    cube = np.arange(24.0).reshape(2, 3, 4)
    assert top(cube, 1)[0].tolist() == [[[3], [3], [3]], [[3], [3], [3]]]


def test_empty_input_gives_nothing():
    places, best = top(np.zeros((3, 0)), 5)
    assert places.shape == best.shape == (3, 0)


def test_omitted_videos_have_index_minus_one():
    place, score = top_videos(np.array([[-np.inf, -np.inf, 1.0]], np.float32), 2)
    assert place.tolist() == [[2, -1]]
    assert score[0, 1] == -np.inf


@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 15)), elements=few_values),
    st.integers(1, 8),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_running_in_blocks_equals_all_at_once(scores, n, block, random):
    order = list(range(scores.shape[1]))
    random.shuffle(order)
    running = Running(len(scores), n)
    for first in range(0, len(order), block):
        part = np.array(order[first : first + block])
        running.add(scores[:, part], part)
    place, best = top_videos(scores, n)
    real = best > -np.inf
    assert running.score.tolist() == best.tolist()
    assert running.video[real].tolist() == place[real].tolist()
    assert (running.video[~real] == -1).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_values_keep_their_type(dtype):
    assert top(np.ones((1, 3), dtype), 2)[1].dtype == dtype
