"""Scan: a search over a library's segments, with the quickest kernel, and with a plan if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import LibraryError
from momentseek.core.native.kernels import address, call, kernels, writable
from momentseek.library.scan.coarse import NO_LIMIT, Reach, list_near
from momentseek.library.scan.exact import NONE_GONE, BestVideos, OpenVideos, best_among, open_videos
from momentseek.library.scan.kernels import (
    MIN_PLANNED_ROWS,
    Kernel,
    QuantisedQueries,
    best_kernel,
    has_kernels,
    quantise_queries,
    video_count,
)
from momentseek.library.scan.plan import Plan, open_plan
from momentseek.library.scan.threads import run_together
from momentseek.library.segments import Segment, check_map

MIN_PLANNED_SHARE = 0.05
"""When a filter leaves less than this share of the videos, those few are scanned exactly."""


class Scan:
    """The segments of one stream, opened for searching; safe to use from several threads.

    >>> from momentseek.library.segments import build_segment
    >>> scan = Scan([build_segment("vision", [3, 5], [np.eye(2, dtype=np.float32)[:1], np.eye(2, dtype=np.float32)])])
    >>> scan.search(np.array([0, 1], np.float32), 1).ids.tolist()
    [[5]]
    """

    def __init__(self, segments: Sequence[Segment], plan: Plan | None = None) -> None:
        self.segments = tuple(segments)
        self.plan = plan
        self._covered: CoveredSegments | None = None

    @classmethod
    def open(cls, segments: Sequence[Segment], folder: Path) -> Scan:
        """Open segments for searching; with the plan in ``folder`` if the library is large."""
        rows = sum(segment.rows for segment in segments)
        if rows < MIN_PLANNED_ROWS or not has_kernels():
            return cls(segments)

        return cls(segments, open_plan(folder, segments))

    @property
    def rows(self) -> int:
        """Number of clips of all segments."""
        return sum(segment.rows for segment in self.segments)

    @property
    def videos(self) -> int:
        """Number of videos of all segments, those marked as removed included."""
        return sum(len(segment.ids) for segment in self.segments)

    def search(
        self,
        queries: NDArray[Any],
        k: int,
        *,
        allowed: NDArray[np.bool_] | None = None,
        gone: NDArray[np.int64] = NONE_GONE,
        exact: bool = False,
    ) -> BestVideos:
        """The k best videos for each query, by the plan if there is one, or exactly if asked.

        ``allowed`` has one entry per video of all segments in their order; ``gone`` are ids that no longer count.
        """
        for segment in self.segments:
            segment.check_size()
        if self.plan is not None:
            try:
                self.plan.means.check_size()
                check_map(self.plan.listed.mapped, "the plan's coarse list")
            except LibraryError:  # cut short: search without it; `verify` names it
                self.plan = None
        ready = quantise_queries(queries, self.segments[0].dim if self.segments else np.shape(queries)[-1])
        places = open_videos(self.segments, allowed, gone)
        left = sum(video_count(s, p) for s, p in zip(self.segments, places, strict=True))
        plan = self.plan
        if plan is None or exact or left <= MIN_PLANNED_SHARE * self.videos:
            return best_among(self.segments, ready, k, places, best_kernel())

        return search_by_plan(ready, k, places, plan, self.coverage(plan), best_kernel())

    def coverage(self, plan: Plan) -> CoveredSegments:
        """The segments as a plan covers them."""
        known = self._covered
        if known is None or known.covers != plan.covers:
            known = self._covered = CoveredSegments(self.segments, plan.covers)
        return known


MIN_RANKED = 100
"""Smallest number of videos to rank, because margins are tuned for this many and too narrow for a few."""


def ranked_videos(k: int) -> int:
    """Number of videos that a search ranks to find the k best."""
    return max(k, MIN_RANKED)


def first_videos(k: int) -> int:
    """Number of videos to score first for the k best; a plan reads on until no mean can reach this rank.

    >>> first_videos(100)
    125
    """
    return k + k // 4


def search_by_plan(
    queries: QuantisedQueries, k: int, places: OpenVideos, plan: Plan, covered: CoveredSegments, kernel: Kernel
) -> BestVideos:
    """The k best videos for each query, of those the plan lets through."""
    if k <= 0:
        return BestVideos.empty(len(queries))
    is_open = covered.open_numbers(places)
    others = covered.others(places)
    answers: dict[int, BestVideos] = {}

    def answer(i: int) -> None:
        query = queries.part(i, i + 1)
        best = best_of_plan(query, k, plan, covered, is_open)
        if others is not None:
            best = merge(best, best_among(covered.segments, query, k, others, kernel), k)
        answers[i] = best

    run_together([partial(answer, i) for i in range(len(queries))])
    return join_answers([answers[i] for i in range(len(queries))])


def best_of_plan(
    query: QuantisedQueries, k: int, plan: Plan, covered: CoveredSegments, is_open: NDArray[np.bool_] | None
) -> BestVideos:
    """The k best videos for one query, of those the plan covers and lets through."""
    depths, wanted, k = plan.depths, k, ranked_videos(k)
    # filtered videos must not use up the share of the list that may be read
    share = depths.share if is_open is None else depths.share / max(1e-3, float(is_open.mean()))
    reach = Reach(first_videos(k), max(depths.coarse, 2 * k), share, depths.hope, depths.coarse_margin)
    near = list_near(plan.listed, plan.means.owner, is_open, query.vectors[0], reach)
    videos, bounds = plan.means.videos(near.numbers, query)
    most = max(depths.fine, k)
    margin = None if depths.fine_margin is None else depths.fine_margin * near.spread
    best = covered.rank(query, k, videos[:most], bounds[:most], margin)
    return best.first(wanted)


def merge(one: BestVideos, two: BestVideos, k: int) -> BestVideos:
    """The k best videos for one query, of two lists that have none in common."""
    both = [np.concatenate([getattr(b, name)[0] for b in (one, two)]) for name in ("ids", "scores", "segment", "at")]
    order = np.lexsort((both[0], -both[1]))[:k]
    return BestVideos(*(values[order][None] for values in both))


def join_answers(answers: Sequence[BestVideos]) -> BestVideos:
    """Join the best videos of several queries, cut to the shortest list."""
    if len(answers) == 1:
        return answers[0]
    depth = min((a.ids.shape[1] for a in answers), default=0)
    return BestVideos(
        *(np.concatenate([getattr(a, name)[:, :depth] for a in answers]) for name in ("ids", "scores", "segment", "at"))
    )


class CoveredSegments:
    """The segments of a search, and which of them a plan covers: its videos are numbered in the order of these."""

    def __init__(self, segments: Sequence[Segment], covers: tuple[str, ...]) -> None:
        index = {segment.name: i for i, segment in enumerate(segments)}
        self.segments = segments
        self.covers = covers
        self._index = np.array([index[name] for name in covers], np.int64)
        self._parts = [segments[i] for i in self._index]
        self._starts = np.concatenate([[0], np.cumsum([len(part.ids) for part in self._parts])]).astype(np.int64)

    @cached_property
    def _given(self) -> tuple[NDArray[np.int64], list[NDArray[np.generic]]]:
        """The arguments of a kernel for each segment, and the arrays behind them, which must stay alive."""
        rows, kept = [], []
        for part in self._parts:
            arrays = [np.asarray(a) for a in (part.codes, part.scales, part.half, part.offsets, part.ids)]
            shapes = [(part.rows, part.dim), (part.rows,), (part.rows, part.dim), (len(part.ids) + 1,), (-1,)]
            kinds = [np.int8, np.float32, np.float16, np.int64, np.int64]
            where = [address(a, kind, *shape) for a, kind, shape in zip(arrays, kinds, shapes, strict=True)]
            rows.append([*where, len(part.ids), part.rows])
            kept += arrays
        return np.array(rows, np.int64).reshape(len(rows), 7), kept

    def rank(
        self,
        query: QuantisedQueries,
        k: int,
        videos: NDArray[np.int32],
        bounds: NDArray[np.float32],
        margin: float | None,
    ) -> BestVideos:
        """The k best of some videos, given by their numbers in the order of falling bounds.

        The first few are scored; of the others, those whose bounds are within the margin of the k-th best so far.
        """
        dim = query.vectors.shape[1]
        table, count = self._given[0], min(k, len(videos))
        ids, part, at = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
        scores, done = np.empty(count, np.float32), np.zeros(1, np.int64)
        if count:
            call(
                kernels().rank_videos,
                address(table, np.int64, -1, 7), address(self._starts, np.int64, len(table) + 1), len(table), dim,
                address(videos, np.int32, -1), address(bounds, np.float32, len(videos)), len(videos),
                first_videos(k), count, NO_LIMIT if margin is None else margin,
                address(query.codes, np.int16, 1, dim), address(query.steps, np.float32, 1),
                address(query.slacks, np.float32, 1), address(query.floors, np.float32, 1),
                address(query.vectors, np.float32, 1, dim),
                writable(ids, np.int64, count), writable(scores, np.float32, count), writable(part, np.int64, count),
                writable(at, np.int64, count), writable(done, np.int64, 1),
            )  # fmt: skip
        there = slice(0, done.item())
        return BestVideos(ids[None, there], scores[None, there], self._index[part[there]][None], at[None, there])

    def numbers(self, best: BestVideos) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which of one query's best videos the plan covers, and their numbers in the plan."""
        start = np.full(len(self.segments), -1)
        start[self._index] = self._starts[:-1]
        first = start[best.segment[0]]
        return first >= 0, first + best.at[0]

    def open_numbers(self, places: OpenVideos) -> NDArray[np.bool_] | None:
        """Which of the plan's videos may be found, by their numbers; None if all may."""
        if all(places[i] is None for i in self._index):
            return None
        is_open = np.zeros(int(self._starts[-1]), bool)
        for start, end, i in zip(self._starts[:-1], self._starts[1:], self._index, strict=True):
            chosen = places[i]
            is_open[slice(start, end) if chosen is None else start + chosen] = True
        return is_open

    def others(self, places: OpenVideos) -> OpenVideos | None:
        """The open videos of the segments that the plan does not cover; None if there are none."""
        if len(self._parts) == len(self.segments):
            return None
        out = list(places)
        for i in self._index:
            out[i] = np.zeros(0, np.int64)
        return out
