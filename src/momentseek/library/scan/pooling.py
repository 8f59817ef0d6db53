"""Means of the scenes of videos, sorted into groups of similar means, so that a query reads only the best groups."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from momentseek.core.native.kernels import address, call, kernels, pad_panel, panel_places, query_panels, writable
from momentseek.library.scan.kernels import quantise_queries
from momentseek.library.scan.threads import run_together

VECTORS_PER_GROUP = 64
"""Smallest average number of vectors in a group: two blocks of a coarse list."""
MAX_GROUPS = 2048
"""Largest number of groups; more would cost more than they save."""
GROUPING_ROUNDS = 8
MIN_GROUP, MAX_GROUP = 0.3, 2.0
"""A group with less than this share of the average starts again inside one with more than that."""
ROWS_PER_TASK = 1 << 12

Floats = NDArray[np.float32]
Codes = NDArray[np.int8]


def group_count(vectors: int) -> int:
    """The number of groups for a number of vectors.

    >>> group_count(10), group_count(6400), group_count(4_500_000)
    (1, 100, 2048)
    """
    return max(1, min(MAX_GROUPS, vectors // VECTORS_PER_GROUP))


def train_groups(codes: Codes, scales: Floats, count: int) -> Floats:
    """The means ``(count, columns)`` of groups, learnt from a sample with at least ``count`` rows.

    >>> train_groups(np.array([[0, 1], [0, 3], [9, 8]], np.int8), np.ones(3, np.float32), 1).tolist()
    [[3.0, 4.0]]
    """
    rng = np.random.default_rng(2)
    sample = codes * scales[:, None]
    groups = sample[rng.choice(len(sample), count, replace=False)]
    average = len(sample) / count
    for left in reversed(range(GROUPING_ROUNDS)):
        owner = nearest_groups(codes, scales, groups)
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


def nearest_groups(codes: Codes, scales: Floats, groups: Floats) -> NDArray[np.int32]:
    """The group of each vector: the one whose mean is nearest, to within the rounding of the means to 16 bits.

    >>> codes, groups = np.array([[9, 0], [0, 9]], np.int8), np.eye(2, dtype=np.float32)
    >>> nearest_groups(codes, np.ones(2, np.float32), groups).tolist()
    [0, 1]
    """
    rows, dim = codes.shape
    ready = quantise_queries(groups, dim)
    room = panel_places(len(groups))
    panels, steps = query_panels(ready.codes), pad_panel(ready.steps)
    halves = np.full(room, np.inf, np.float32)
    halves[: len(groups)] = np.square(groups).sum(axis=1) / 2
    out = np.empty(rows, np.int32)
    given = (
        address(codes, np.int8, rows, dim), address(scales, np.float32, rows), dim,
        address(panels, np.int16, room * (dim + dim % 2)), room,
        address(steps, np.float32, room), address(halves, np.float32, room), writable(out, np.int32, rows),
    )  # fmt: skip
    edges = [*range(0, rows, ROWS_PER_TASK), rows]
    run_together([partial(call, kernels().nearest_points, *given, low, high) for low, high in pairwise(edges)])
    return out


CLIPS_PER_STRETCH = 32
"""Number of clips that are pooled together."""
MAX_SCENES_PER_STRETCH = 8
"""Largest number of scenes in a stretch."""
MAX_SPREAD = 0.25
"""Largest mean squared distance of clips to their scene's mean."""
MAX_DISTANCE = 0.6
"""Largest squared distance of the means of two scenes that are merged."""


def pool_scenes(
    codes: NDArray[np.int8], scales: NDArray[np.float32], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Means of the scenes of each video, and offsets of each video's means.

    >>> codes = np.array([[127, 0], [127, 0], [0, 127]], np.int8)
    >>> means, offsets = pool_scenes(codes, np.full(3, 1 / 127, np.float32), np.array([0, 3, 3]))
    >>> means.tolist(), offsets.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0, 2, 2])
    """
    videos = len(offsets) - 1
    cuts = np.linspace(0, videos, 1 + max(1, min(8, videos // 64))).astype(np.int64)
    lengths = np.diff(offsets)
    room = lengths // CLIPS_PER_STRETCH * MAX_SCENES_PER_STRETCH + np.minimum(
        lengths % CLIPS_PER_STRETCH, MAX_SCENES_PER_STRETCH
    )
    places = np.concatenate([[0], np.cumsum(room)])
    means = np.empty((int(places[-1]), codes.shape[1]), np.float32)
    counts = np.zeros(videos, np.int64)
    rows, dim = codes.shape
    offsets = np.ascontiguousarray(offsets, np.int64)
    ready = (
        address(np.asarray(codes), np.int8, rows, dim), address(np.asarray(scales), np.float32, rows), dim,
        address(offsets, np.int64, videos + 1), videos, rows, address(places, np.int64, videos + 1),
        writable(means, np.float32, int(places[-1]), dim), writable(counts, np.int64, videos),
        CLIPS_PER_STRETCH, MAX_SCENES_PER_STRETCH, MAX_SPREAD, MAX_DISTANCE,
    )  # fmt: skip
    run_together(partial(call, kernels().pool_scenes, *ready, low, high) for low, high in pairwise(cuts.tolist()))
    starts = np.concatenate([[0], np.cumsum(counts)])
    keep = np.repeat(places[:-1] - starts[:-1], counts) + np.arange(starts[-1])
    return means[keep], starts
