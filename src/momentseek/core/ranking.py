"""Rank moments: the best of many spans, non-maximum suppression, merging lists, and times of clips."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.moment import iou as overlap

Scores = NDArray[np.floating[Any]]


def top(values: Scores, k: int) -> tuple[IntArray, Scores]:
    """Return indices and values of the ``k`` largest entries of each row, best first; ties go to the earlier index.

    There are fewer than ``k`` if the rows are shorter. Entries of minus infinity come last, in no particular order.

    >>> positions, best = top(np.array([[0.1, 0.9, 0.5, 0.9], [2.0, 0.0, 2.0, 2.0]]), 2)
    >>> positions.tolist(), best.tolist()
    ([[1, 3], [0, 2]], [[0.9, 0.9], [2.0, 2.0]])
    """
    values = np.asarray(values)
    size = values.shape[-1]
    k = max(0, min(k, size))
    rows = values.reshape(-1, size) if size else values.reshape(int(np.prod(values.shape[:-1])), 0)
    shape = (*values.shape[:-1], k)
    if k == 0:
        return np.zeros(shape, np.int64), np.zeros(shape, values.dtype)
    if k < size:
        positions = np.argpartition(rows, size - k, axis=1)[:, size - k :].astype(np.int64)
        worst = np.take_along_axis(rows, positions, axis=1).min(axis=1)
        tied = (np.count_nonzero(rows >= worst[:, None], axis=1) > k) & (worst > -np.inf)
        for i in np.flatnonzero(tied):
            better = np.flatnonzero(rows[i] > worst[i])
            positions[i] = np.concatenate([better, np.flatnonzero(rows[i] == worst[i])[: k - len(better)]])
        positions.sort(axis=1)
    else:
        positions = np.broadcast_to(np.arange(size), rows.shape)
    best = np.take_along_axis(rows, positions, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    positions, best = np.take_along_axis(positions, order, axis=1), np.take_along_axis(best, order, axis=1)
    return positions.reshape(shape), best.reshape(shape)


def top_videos(scores: Scores, n: int) -> tuple[IntArray, Scores]:
    """Return the ``n`` best videos of each query, best first; ties go to the earlier video of the corpus.

    A score of minus infinity leaves a video out: its index is -1.

    >>> top_videos(np.array([[0.2, -np.inf, 0.7]]), 3)[0].tolist()
    [[2, 0, -1]]
    """
    positions, best = top(scores, n)
    return np.where(best > -np.inf, positions, -1), best


class Running:
    """Collects the ``n`` best videos of each query from a corpus in blocks, in any order of the videos.

    >>> running = Running(1, 2)
    >>> running.add(np.array([[0.5, 0.1]]), np.array([7, 2]))
    >>> running.add(np.array([[0.5, 0.3]]), np.array([4, 3]))
    >>> running.video.tolist(), running.score.tolist()
    ([[4, 7]], [[0.5, 0.5]])
    """

    def __init__(self, queries: int, n: int) -> None:
        self.n = n
        self.video = np.zeros((queries, 0), np.int64)
        self.score = np.zeros((queries, 0), np.float64)

    def add(self, scores: Scores, videos: IntArray) -> None:
        """Add scores ``(queries, v)`` of the ``v`` videos with these indices in the corpus."""
        order = np.argsort(videos, kind="stable")
        if not np.array_equal(order, np.arange(len(order))):
            scores, videos = scores[:, order], videos[order]
        positions, best = top_videos(scores, self.n)
        found = np.where(positions < 0, -1, videos[positions])
        video = np.concatenate([self.video, found], axis=1)
        score = np.concatenate([self.score, best.astype(np.float64)], axis=1)
        order = np.lexsort((video, -score), axis=-1)[:, : self.n]
        self.video, self.score = np.take_along_axis(video, order, axis=1), np.take_along_axis(score, order, axis=1)


class Spans(NamedTuple):
    """Spans of clips ``first`` to ``last`` (inclusive) with their scores, best first; arrays of one shape.

    A score of minus infinity means that there are no more spans.
    """

    first: IntArray
    last: IntArray
    score: Scores


def span_grid(
    start: NDArray[Any], end: NDArray[Any], shortest: int = 1, longest: int | None = None, mask: BoolArray | None = None
) -> Scores:
    """``[..., s, w] = start[..., s] + end[..., s + shortest - 1 + w]``: scores of all spans with the lengths allowed.

    ``start`` and ``end`` are ``(..., clips)`` logarithms of probabilities, so the sum is the logarithm of XML's
    ``p_start p_end`` (TVR, section 4.4). Spans that leave the video, or contain a masked clip, are minus infinity.

    >>> span_grid(np.array([0.0, -1.0, -2.0]), np.array([-5.0, -6.0, -7.0]), 1, 2).tolist()
    [[-5.0, -6.0], [-7.0, -8.0], [-9.0, -inf]]
    """
    clips = start.shape[-1]
    longest = clips if longest is None else longest
    if not 1 <= shortest <= longest:
        raise ValueError(f"spans of {shortest} to {longest} clips do not exist")
    lengths = longest - shortest + 1
    last = np.arange(clips)[:, None] + np.arange(shortest - 1, longest)
    inside = last < clips
    grid = start[..., :, None] + end[..., np.where(inside, last, 0)]
    allowed: BoolArray = np.broadcast_to(inside, grid.shape)
    if mask is not None:
        # Cumulative count of masked clips, so that two lookups tell whether a span contains one.
        denied = np.concatenate([np.zeros((*mask.shape[:-1], 1), np.int64), np.cumsum(~mask, axis=-1)], axis=-1)
        within = denied[..., np.where(inside, last + 1, 0)] - denied[..., :clips, None]
        allowed = allowed & (within == 0)
    assert grid.shape[-1] == lengths
    return np.where(allowed, grid, -np.inf).astype(grid.dtype)


def best_spans(grid: Scores, k: int, shortest: int = 1) -> Spans:
    """Return the ``k`` best spans of each grid ``(..., clips, lengths)``; ties go to the earlier, then shorter span.

    >>> best_spans(np.array([[-5.0, -1.0], [-1.0, -8.0], [-9.0, -np.inf]]), 2)
    Spans(first=array([0, 1]), last=array([1, 1]), score=array([-1., -1.]))
    """
    lengths = grid.shape[-1]
    positions, score = top(grid.reshape(*grid.shape[:-2], -1), k)
    first, length = np.divmod(positions, max(1, lengths))
    return Spans(first, first + shortest - 1 + length, score)


def suppress(
    start: ArrayLike, end: ArrayLike, iou: float = 0.5, limit: int | None = None, video: ArrayLike | None = None
) -> BoolArray:
    """Return which moments stay after non-maximum suppression: each drops worse ones with an IoU above ``iou``.

    Moments are sorted best first along the last axis; other axes are separate lists, processed together. ``video`` has
    the same shape if the moments are of several videos, and moments of different videos never drop each other. At most
    ``limit`` stay in each row. Moments are selected, never merged: the union of overlapping ones is wider than any of
    them and finds less (docs/architecture.md).

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
    """Process the i-th moments of all lists at once, which for short lists is many times faster than one by one."""
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


EndTime = Literal["inclusive", "start"]
END_TIMES: tuple[EndTime, ...] = ("inclusive", "start")


def moments_of(
    first: IntArray,
    last: IntArray,
    edges: FloatArray,
    position: IntArray | int = 0,
    end_time: EndTime = "inclusive",
) -> tuple[FloatArray, FloatArray]:
    """Return start and end in seconds of spans of clips ``first`` to ``last``, both inclusive.

    ``edges`` are the times between clips, one more than there are clips; edges of several videos may be concatenated,
    and ``position`` is then the index where those of each span's video begin. A span ends at the end of its last clip
    (``inclusive``) or, as in ReLoCLNet's public code, at its start (``start``); a span of one clip is that clip in both
    cases, because a moment has a length.

    >>> edges = np.array([0.0, 1.5, 3.0, 4.5, 5.2])
    >>> moments_of(np.array([1, 2]), np.array([3, 2]), edges)
    (array([1.5, 3. ]), array([5.2, 4.5]))
    >>> moments_of(np.array([1, 2]), np.array([3, 2]), edges, end_time="start")
    (array([1.5, 3. ]), array([4.5, 4.5]))
    """
    if end_time not in END_TIMES:
        raise MomentseekError(f"end_time must be {' or '.join(END_TIMES)}, not {end_time!r}")
    beyond = last + 1 if end_time == "inclusive" else np.maximum(last, first + 1)
    return edges[position + first], edges[position + beyond]


def merge(spans: Scores, videos: Scores, alpha: float, k: int) -> tuple[IntArray, IntArray, FloatArray]:
    r"""Return the ``k`` best of the spans ``(queries, videos, spans)`` by ``span + alpha * video``.

    With spans as :math:`\log p_{st} + \log p_{ed}` that is the order of XML's
    :math:`p_{st}\, p_{ed} \exp(\alpha s^{vr})` (TVR, section 4.4), without overflow or underflow. Returns the indices
    of the video and the span in their lists and the score, each ``(queries, k)``. Ties go to the earlier video, then
    the earlier span; minus infinity marks missing entries.

    >>> video, span, score = merge(np.array([[[-1.0, -2.0], [-0.5, -4.0]]]), np.array([[0.9, 0.8]]), 10.0, 3)
    >>> video.tolist(), span.tolist(), score.tolist()
    ([[0, 1, 0]], [[0, 0, 1]], [[8.0, 7.5, 7.0]])
    """
    queries, _, each = spans.shape
    total = spans.astype(np.float64)
    if alpha != 0:
        total += (alpha * np.asarray(videos, dtype=np.float64))[:, :, None]
    positions, score = top(total.reshape(queries, -1), k)
    video, span = np.divmod(positions, max(1, each))
    return video, span, score.astype(np.float64)
