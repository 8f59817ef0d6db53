from __future__ import annotations

import numpy as np

from momentseek.library.scan.groups import MAX_GROUPS, group_count, nearest_groups, train_groups


def blobs(count: int, each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points around some means far apart, and the mean that each belongs to."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(count, 16)).astype(np.float32)
    owner = np.repeat(np.arange(count), each)
    return (means[owner] + 0.05 * rng.normal(size=(count * each, 16))).astype(np.float32), owner


def test_a_vector_belongs_to_the_group_whose_mean_is_nearest():
    rng = np.random.default_rng(1)
    vectors, groups = rng.normal(size=(3000, 7)).astype(np.float32), rng.normal(size=(40, 7)).astype(np.float32)
    distance = np.square(vectors[:, None] - groups).sum(axis=2)
    np.testing.assert_array_equal(nearest_groups(vectors, groups), distance.argmin(axis=1))


def test_groups_that_are_there_are_found():
    """With twice as many groups as blobs, hardly any group holds vectors of two blobs."""
    vectors, owner = blobs(30, 60)
    found = nearest_groups(vectors, train_groups(vectors, 60))
    pure = sum(np.bincount(owner[found == group]).max(initial=0) for group in range(60))
    assert pure / len(vectors) > 0.97


def test_no_group_is_much_larger_than_the_others():
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(6400, 8)).astype(np.float32)
    sizes = np.bincount(nearest_groups(vectors, train_groups(vectors, group_count(6400))), minlength=100)
    assert sizes.max() < 6 * 64


def test_alike_vectors_are_no_obstacle():
    same = np.ones((200, 4), np.float32)
    groups = train_groups(same, 3)
    assert np.isfinite(groups).all()
    assert len(set(nearest_groups(same, groups).tolist())) == 1


def test_groups_are_the_same_each_time_and_not_too_many():
    vectors, _ = blobs(10, 64, seed=3)
    np.testing.assert_array_equal(train_groups(vectors, 10), train_groups(vectors, 10))
    assert group_count(10**9) == MAX_GROUPS
