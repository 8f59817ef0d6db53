"""The best videos for a query, exactly: a video's score is the largest dot product of one of its clips.

With unit vectors that is the cosine ("late interaction", Khattab & Zaharia 2020, with one query vector). The int8 scan
gives every video an upper bound of its float16 score; the best bounds are scored exactly, and then every video whose
bound reaches the k-th best of those. What comes back is what scoring every clip in float16 would have given, ties in
order of the videos' ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.kernels import (
    Kernel,
    Places,
    QuantisedQueries,
    Scores,
    SegmentPart,
    video_count,
)
from momentseek.library.scan.threads import run_together
from momentseek.library.segments import Segment

MAX_BOUNDS = 1 << 24
"""Bounds held at once (64 MB); more queries than that allows are answered in parts."""
GROUP_SIZE = 32
"""Number of values in a group, which is represented by its largest when the largest of very many are sought."""
NONE_GONE: NDArray[np.int64] = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class BestVideos:
    """The best videos of each query, best first; all arrays are ``(queries, k)``, or fewer if there are fewer videos.

    ``segments[segment].vectors(at)`` are the rows of a video.
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]
    segment: NDArray[np.int64]
    at: NDArray[np.int64]

    def first(self, k: int) -> BestVideos:
        """The k best of each query."""
        return BestVideos(self.ids[:, :k], self.scores[:, :k], self.segment[:, :k], self.at[:, :k])

    @classmethod
    def empty(cls, queries: int) -> BestVideos:
        """The result of a search that found nothing, for a number of queries."""
        none = np.zeros((queries, 0), np.int64)
        return cls(none, np.zeros((queries, 0), np.float32), none, none)


OpenVideos = list["Places | None"]
"""Positions of the videos that may be found in each segment; None means all of them."""


def open_videos(segments: Sequence[Segment], allowed: NDArray[np.bool_] | None, gone: NDArray[np.int64]) -> OpenVideos:
    """The videos of each segment that may be found."""
    total = sum(len(s.ids) for s in segments)
    if allowed is not None and len(allowed) != total:
        raise ValueError(f"allowed has {len(allowed)} entries for {total} videos")
    if allowed is None and not len(gone):
        return [None] * len(segments)
    places: OpenVideos = []
    start = 0
    for segment in segments:
        ids = np.asarray(segment.ids)
        keep = np.ones(len(ids), bool) if allowed is None else np.array(allowed[start : start + len(ids)], bool)
        if len(gone):
            keep &= ~np.isin(ids, gone)
        places.append(None if keep.all() else np.flatnonzero(keep))
        start += len(ids)
    return places


def best_among(
    segments: Sequence[Segment], queries: QuantisedQueries, k: int, places: OpenVideos, kernel: Kernel
) -> BestVideos:
    """The k best of some videos of each segment for each query, exactly."""
    chosen = VideoSelection(segments, places)
    if k <= 0 or chosen.total == 0 or len(queries) == 0:
        return BestVideos.empty(len(queries))
    batch = max(1, MAX_BOUNDS // chosen.total)
    ranked: dict[int, tuple[NDArray[np.int64], Scores]] = {}

    def rank(number: int, bounds: Scores, query: NDArray[np.float32]) -> None:
        flat, scores = score_contenders(bounds, k, partial(chosen.scores, kernel, query))
        order = np.lexsort((chosen.ids(flat), -scores))[:k]
        ranked[number] = flat[order], scores[order]

    for start in range(0, len(queries), batch):
        part = queries.part(start, start + batch)
        bounds = kernel.bounds(chosen.parts, part)
        bounds += part.floors[:, None]
        run_together([partial(rank, start + i, row, part.vectors[i]) for i, row in enumerate(bounds)])
    found = [ranked[number] for number in range(len(queries))]
    depth = min(len(flat) for flat, _ in found)
    flat = np.array([flat[:depth] for flat, _ in found], np.int64).reshape(len(found), depth)
    scores = np.array([s[:depth] for _, s in found], np.float32).reshape(flat.shape)
    owner, at = chosen.locate(flat.reshape(-1))
    ids = chosen.ids(flat.reshape(-1))
    return BestVideos(ids.reshape(flat.shape), scores, owner.reshape(flat.shape), at.reshape(flat.shape))


class VideoSelection:
    """A selection of videos from several segments, numbered consecutively (their flat places)."""

    def __init__(self, segments: Sequence[Segment], places: OpenVideos) -> None:
        counts = [video_count(s, p) for s, p in zip(segments, places, strict=True)]
        self._kept = [i for i, count in enumerate(counts) if count]
        self.parts: list[SegmentPart] = [(segments[i], places[i]) for i in self._kept]
        self._starts = np.concatenate([[0], np.cumsum([counts[i] for i in self._kept])]).astype(np.int64)
        self.total = int(self._starts[-1])

    def locate(self, flat: Places) -> tuple[Places, Places]:
        """The segment of each video, given by its index among all videos, and its index in that segment."""
        owner = np.zeros(len(flat), np.int64)
        at = np.zeros(len(flat), np.int64)
        for index, mine, there in self._by_part(flat):
            owner[mine], at[mine] = self._kept[index], there
        return owner, at

    def ids(self, flat: Places) -> NDArray[np.int64]:
        """The ids of videos, by their flat places."""
        out = np.zeros(len(flat), np.int64)
        for index, mine, there in self._by_part(flat):
            out[mine] = self.parts[index][0].ids[there]
        return out

    def scores(self, kernel: Kernel, query: NDArray[np.float32], flat: Places) -> Scores:
        """The exact scores of videos, by their flat places."""
        return self.scores_by(flat, lambda parts: kernel.scores(parts, query))

    def scores_by(self, flat: Places, score: Callable[[Sequence[SegmentPart]], Scores]) -> Scores:
        """The results of ``score`` for videos, by their flat places."""
        out = np.zeros(len(flat), np.float32)
        parts = list(self._by_part(flat))
        if parts:
            scores = score([(self.parts[index][0], there) for index, _, there in parts])
            out[np.concatenate([mine for _, mine, _ in parts])] = scores
        return out

    def _by_part(self, flat: Places) -> Iterator[tuple[int, Places, Places]]:
        """The parts that occur, their positions in ``flat``, and the places in the part's segment."""
        order = np.argsort(flat, kind="stable")
        cuts = np.searchsorted(flat[order], self._starts)
        for index, (_, places) in enumerate(self.parts):
            if cuts[index] < cuts[index + 1]:
                mine = order[cuts[index] : cuts[index + 1]]
                there = flat[mine] - self._starts[index]
                yield index, mine, there if places is None else places[there]


def score_contenders(
    bounds: Scores, k: int, exact: Callable[[NDArray[np.int64]], Scores]
) -> tuple[NDArray[np.int64], Scores]:
    """Places and exact scores of every video that can be among the k best (and of some that cannot).

    >>> true = np.array([0.5, 0.9, 0.1, 0.8], np.float32)
    >>> score_contenders(true + np.float32(0.05), 1, lambda flat: true[flat])[0].tolist()
    [1]
    """
    first = highest(bounds, min(len(bounds), k + k // 4))
    scores = exact(first)
    keep = scores > -np.inf
    if np.count_nonzero(keep) >= k:
        needed = np.partition(scores, len(scores) - k)[len(scores) - k]
        rest = np.flatnonzero(bounds >= needed)
    else:
        rest = np.flatnonzero(bounds > -np.inf)
    rest = rest[~np.isin(rest, first)]
    flat = np.concatenate([first, rest])
    scores = np.concatenate([scores, exact(rest)])
    keep = scores > -np.inf
    return flat[keep], scores[keep]


def highest(values: Scores, count: int) -> NDArray[np.int64]:
    """Positions of the ``count`` largest values, unordered; no value may be NaN.

    >>> sorted(highest(np.array([3, 1, 2, 5], np.float32), 2).tolist())
    [0, 3]
    """
    if count >= len(values):
        return np.arange(len(values))
    if len(values) < 16 * GROUP_SIZE * count:
        return np.argpartition(values, len(values) - count)[len(values) - count :]
    # ``count`` groups have a maximum of at least ``least``, so at least ``count`` values are at least that large
    groups = values[: len(values) // GROUP_SIZE * GROUP_SIZE].reshape(GROUP_SIZE, -1).max(axis=0)
    least = np.partition(groups, len(groups) - count)[len(groups) - count]
    some = np.flatnonzero(values >= least)
    return some[np.argpartition(values[some], len(some) - count)[len(some) - count :]]
