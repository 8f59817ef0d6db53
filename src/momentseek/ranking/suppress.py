"""Non-maximum suppression: of moments that say the same, the best one stays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from momentseek.moments.arrays import BoolArray, FloatArray
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
    starts, ends = (np.asarray(x, dtype=np.float64) for x in (start, end))
    videos = None if video is None else np.asarray(video)
    if starts.ndim == 1:
        if len(starts) == 1 and limit != 0:
            return np.ones(1, dtype=bool)
        return _one(starts, ends, iou, limit, videos)
    rows = (int(np.prod(starts.shape[:-1])), starts.shape[-1])
    named = None if videos is None else videos.reshape(rows)
    return _many(starts.reshape(rows), ends.reshape(rows), named, iou, limit).reshape(starts.shape)


def _one(start: FloatArray, end: FloatArray, iou: float, limit: int | None, video: NDArray[Any] | None) -> BoolArray:
    kept = np.zeros(len(start), dtype=bool)
    alive = np.ones(len(start), dtype=bool)
    count = 0
    for i in range(len(start)):
        if not alive[i]:
            continue
        if limit is not None and count >= limit:
            break
        kept[i] = True
        count += 1
        rest = slice(i + 1, None)
        near = overlap(start[rest], end[rest], start[i], end[i]) > iou
        alive[rest] &= ~near if video is None else ~(near & (video[rest] == video[i]))
    return kept


def _many(start: FloatArray, end: FloatArray, video: NDArray[Any] | None, iou: float, limit: int | None) -> BoolArray:
    """The i-th moments of all lists at once: short lists are worked on many times as fast as one by one."""
    kept = np.ones(start.shape, dtype=bool)
    counts = np.zeros(len(start), dtype=np.int64)
    for i in range(start.shape[1]):
        rows = np.flatnonzero(kept[:, i])
        if limit is not None:
            full = counts[rows] >= limit
            kept[rows[full], i:] = False
            rows = rows[~full]
        if not len(rows):
            continue
        counts[rows] += 1
        rest, here = slice(i + 1, None), rows[:, None]
        near = overlap(start[rows, rest], end[rows, rest], start[here, i], end[here, i]) > iou
        if video is not None:
            near &= video[rows, rest] == video[here, i]
        kept[rows, rest] &= ~near
    return kept
