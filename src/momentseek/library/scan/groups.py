"""Groups of like vectors, so that a query need not read all of a list (an inverted file; Sivic and Zisserman, 2003).

Lloyd's algorithm on a sample. It starts from random rows, so that at first some groups hold what should be several and
others next to nothing; after each round those that are too small start again inside those that are too large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

VECTORS_PER_GROUP = 64
"""Vectors of a group, at least, on average: two blocks of a coarse list."""
MAX_GROUPS = 2048
"""More take longer to build and to choose from than they save."""
GROUPING_ROUNDS = 8
MIN_GROUP, MAX_GROUP = 0.3, 2.0
"""A group with less than this share of the average starts again inside one with more than that."""
ROWS_PER_PRODUCT = 1024
"""Rows that meet all groups at a time, so that the products stay in a cache."""

Floats = NDArray[np.float32]


def group_count(vectors: int) -> int:
    """How many groups so many vectors are cut into.

    >>> group_count(10), group_count(6400), group_count(4_500_000)
    (1, 100, 2048)
    """
    return max(1, min(MAX_GROUPS, vectors // VECTORS_PER_GROUP))


def train_groups(sample: Floats, count: int) -> Floats:
    """The means ``(count, columns)`` of groups, learnt from a sample with at least so many rows.

    >>> train_groups(np.array([[0, 1], [0, 3], [8, 8]], np.float32), 1).tolist()
    [[2.6666667461395264, 4.0]]
    """
    rng = np.random.default_rng(2)
    groups = sample[rng.choice(len(sample), count, replace=False)]
    average = len(sample) / count
    for left in reversed(range(GROUPING_ROUNDS)):
        owner = nearest_groups(sample, groups)
        order = np.argsort(owner, kind="stable")
        sizes = np.bincount(owner, minlength=count)
        starts = np.cumsum(sizes) - sizes
        filled = sizes > 0
        sums = np.add.reduceat(sample[order], starts[filled], axis=0)
        groups[filled] = sums / sizes[filled, None]
        if left > 1:  # the last rounds only settle
            small = np.flatnonzero(sizes < MIN_GROUP * average)
            large = np.argsort(-sizes, kind="stable")[: len(small)]
            large = large[sizes[large] > MAX_GROUP * average]
            groups[small[: len(large)]] = sample[order[starts[large] + rng.integers(0, sizes[large])]]
    return groups


def nearest_groups(vectors: Floats, groups: Floats) -> NDArray[np.int32]:
    """The group of each vector: the one whose mean is nearest."""
    half = np.square(groups).sum(axis=1) / 2
    turned = np.ascontiguousarray(groups.T)
    out = np.empty(len(vectors), np.int32)
    for low in range(0, len(vectors), ROWS_PER_PRODUCT):
        products = vectors[low : low + ROWS_PER_PRODUCT] @ turned
        products -= half
        out[low : low + ROWS_PER_PRODUCT] = products.argmax(axis=1)
    return out
