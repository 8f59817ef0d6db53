from __future__ import annotations

import contextlib

import numpy as np
import pytest

from momentseek.core.native.kernels import every_processor, kernels
from momentseek.library.scan.pooling import MAX_GROUPS, group_count, nearest_groups, train_groups
from momentseek.library.segments import quantise

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")


def blobs(count: int, each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points around some means far apart, and the mean that each belongs to."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(count, 16)).astype(np.float32)
    owner = np.repeat(np.arange(count), each)
    return (means[owner] + 0.05 * rng.normal(size=(count * each, 16))).astype(np.float32), owner


@pytest.mark.parametrize(("rows", "dim", "count"), [(3000, 7, 40), (31, 64, 1), (70, 33, 16), (200, 256, 500)])
@pytest.mark.parametrize("processor", ["this", "every"])
def test_a_vector_belongs_to_the_group_whose_mean_is_nearest(rows, dim, count, processor):
    rng = np.random.default_rng(1)
    codes, scales = quantise(rng.normal(size=(rows, dim)))
    groups = rng.normal(size=(count, dim)).astype(np.float32)
    vectors, means = (codes * scales[:, None]).astype(float), groups.astype(float)
    distance = np.square(vectors).sum(axis=1)[:, None] - 2 * vectors @ means.T + np.square(means).sum(axis=1)
    with every_processor() if processor == "every" else contextlib.nullcontext():
        found = nearest_groups(codes, scales, groups)
    # Means are rounded to 16 bits, or to fewer where a sum of all columns would not fit 32.
    np.testing.assert_allclose(distance[np.arange(rows), found], distance.min(axis=1), rtol=2e-4)
    assert (found == distance.argmin(axis=1)).mean() > 0.99


def test_of_equally_near_groups_the_first_is_taken():
    codes, scales = quantise(np.ones((5, 4), np.float32))
    assert nearest_groups(codes, scales, np.ones((40, 4), np.float32)).tolist() == [0] * 5


def test_groups_that_are_there_are_found():
    """With twice as many groups as blobs, hardly any group holds vectors of two blobs."""
    vectors, owner = blobs(30, 60)
    found = nearest_groups(*quantise(vectors), train_groups(*quantise(vectors), 60))
    pure = sum(np.bincount(owner[found == group]).max(initial=0) for group in range(60))
    assert pure / len(vectors) > 0.97


def test_no_group_is_much_larger_than_the_others():
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(6400, 8)).astype(np.float32)
    ready = quantise(vectors)
    sizes = np.bincount(nearest_groups(*ready, train_groups(*ready, group_count(6400))), minlength=100)
    assert sizes.max() < 6 * 64


def test_alike_vectors_are_no_obstacle():
    same = quantise(np.ones((200, 4), np.float32))
    groups = train_groups(*same, 3)
    assert np.isfinite(groups).all()
    assert len(set(nearest_groups(*same, groups).tolist())) == 1


def test_groups_are_the_same_each_time_and_not_too_many():
    vectors, _ = blobs(10, 64, seed=3)
    ready = quantise(vectors)
    np.testing.assert_array_equal(train_groups(*ready, 10), train_groups(*ready, 10))
    assert group_count(10**9) == MAX_GROUPS
