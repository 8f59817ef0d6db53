"""Non-maximum suppression: of moments that say the same, the best one stays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from momentseek.moments.arrays import BoolArray
from momentseek.moments.overlap import iou as overlap


def suppress(
    start: ArrayLike, end: ArrayLike, iou: float = 0.5, limit: int | None = None, video: ArrayLike | None = None
) -> BoolArray:
    """Which moments stay when each drops the worse ones it overlaps by more than ``iou``.

    Moments stand best first in the last axis; rows before it are lists of their own and are worked on together.
    ``video`` has the same shape where the moments are not all of one video, and moments of different videos never
    drop each other. At most ``limit`` stay in each row. Moments are chosen, never glued: the union of overlapping
    ones is wider than any of them and finds less (docs/localising.md).

    >>> suppress([0, 1, 20], [10, 10, 30]).tolist()
    [True, False, True]
    >>> suppress([0, 1, 20], [10, 10, 30], video=[1, 2, 1]).tolist()
    [True, True, True]
    """
    starts, ends = (np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (start, end))
    videos = None if video is None else np.atleast_2d(np.asarray(video))
    kept = np.ones(starts.shape, dtype=bool)
    counts = np.zeros(len(starts), dtype=np.int64)
    for i in range(starts.shape[1]):
        rows = np.flatnonzero(kept[:, i])
        if limit is not None:
            full = counts[rows] >= limit
            kept[rows[full], i:] = False
            rows = rows[~full]
        if not len(rows):
            continue
        counts[rows] += 1
        rest = slice(i + 1, None)
        here = rows[:, None]
        near = overlap(starts[rows, rest], ends[rows, rest], starts[here, i], ends[here, i]) > iou
        if videos is not None:
            near &= videos[rows, rest] == videos[here, i]
        kept[rows, rest] &= ~near
    return kept.reshape(np.shape(start))
