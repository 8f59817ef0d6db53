import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from momentseek.benchmarks.datasets.common import distinct_rows, take_largest, top_similar

scores = arrays.arrays(
    np.float32,
    arrays.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8),
    elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0]),  # many ties
)


@given(scores, st.integers(1, 9))
def test_largest_is_a_stable_sort(table, k):
    indices, values = take_largest(table, min(k, table.shape[1]))
    for row, found, value in zip(table, indices, values, strict=True):
        expected = sorted(range(len(row)), key=lambda i: (-row[i], i))[: min(k, len(row))]
        assert found.tolist() == expected
        assert value.tolist() == row[expected].tolist()


@given(st.integers(0, 5), st.integers(0, 7), st.integers(0, 9), st.integers(1, 4))
def test_shapes_and_blocks(n, m, k, block):
    random = np.random.default_rng(n * 100 + m)
    queries, captions = (random.integers(-2, 3, (rows, 3)).astype(np.float32) for rows in (n, m))
    indices, values = top_similar(queries, captions, k)
    assert indices.shape == values.shape == (n, min(k, m))
    assert (indices.dtype, values.dtype) == (np.int64, np.float32)
    again = top_similar(queries, captions, k, block=block)
    np.testing.assert_array_equal(indices, again[0])
    np.testing.assert_array_equal(values, again[1])
    for q, row in enumerate(indices.tolist()):
        exact = captions @ queries[q]
        assert row == sorted(range(m), key=lambda i: (-exact[i], i))[: min(k, m)]


def test_equal_captions_tie_exactly_wherever_they_stand():
    random = np.random.default_rng(0)
    captions = random.normal(size=(1003, 384)).astype(np.float32)
    captions[[17, 500, 1002]] = captions[3]
    indices, values = top_similar(captions[:5], captions, 4)
    assert indices[3].tolist() == [3, 17, 500, 1002]
    assert len(set(values[3].tolist())) == 1


def test_vectors_of_different_encoders_are_refused():
    with pytest.raises(ValueError, match="different lengths"):
        top_similar(np.zeros((1, 2), np.float32), np.zeros((1, 3), np.float32), 1)


def test_distinct_rows_keep_their_order():
    rows, place = distinct_rows(np.array([[2, 0], [1, 0], [2, 0], [0, 1]], np.float32))
    assert rows.tolist() == [[2, 0], [1, 0], [0, 1]]
    assert place.tolist() == [0, 1, 0, 2]


def test_of_a_group_only_the_best_is_taken():
    rng = np.random.default_rng(3)
    queries, captions = rng.integers(-2, 3, (7, 3)).astype(np.float32), rng.integers(-2, 3, (30, 3)).astype(np.float32)
    _, groups = np.unique(rng.integers(0, 9, 30), return_inverse=True)
    indices, scores = top_similar(queries, captions, 5, groups=groups, block=2)
    everything = queries @ captions.T
    for row, chosen in enumerate(indices.tolist()):
        best = {g: max(everything[row, groups == g]) for g in set(groups.tolist())}
        assert len({groups[c] for c in chosen}) == 5
        assert scores[row].tolist() == sorted(best.values(), reverse=True)[:5]
        assert all(c == np.flatnonzero((groups == groups[c]) & (everything[row] == best[groups[c]]))[0] for c in chosen)
