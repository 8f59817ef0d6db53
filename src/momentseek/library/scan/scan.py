"""Scan: a search over a library's segments, by the quickest kernel, and by the plan where one helps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.choice import MIN_PLANNED_ROWS, best_kernel, has_kernels
from momentseek.library.scan.exact import NONE_GONE, BestVideos, best_among, open_videos
from momentseek.library.scan.kernels import video_count
from momentseek.library.scan.queries import quantise_queries
from momentseek.library.segments import Segment, check_map

if TYPE_CHECKING:
    from momentseek.library.scan.plan import Plan
    from momentseek.library.scan.planned import CoveredSegments

MIN_PLANNED_SHARE = 0.05
"""When a filter leaves less than this share of the videos, those few are scanned exactly."""

MIN_BATCH = 8
"""Queries from which on arithmetic decides how long an exact scan takes."""
SCAN_RATE, LIST_RATE, PLACE_RATE, PLAN_SECONDS = 6e10, 3e10, 1e10, 5e-4
"""Bytes a second of one thread: in an exact scan, in a coarse list, at places far apart; and what a plan takes beside.

Measured on AMD's EPYC at 3.3 GHz with AVX2.
"""
USUAL_SHARE, USUAL_MEANS, USUAL_VIDEOS = 0.1, 2000, 600
"""What a query looks at where a plan's margins decide, about: of the coarse list, of the means, and of the videos."""


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
        from momentseek.library.scan.plan import open_plan

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
            self.plan.means.check_size()
            check_map(self.plan.listed.mapped, "the plan's coarse list")
        ready = quantise_queries(queries, self.segments[0].dim if self.segments else np.shape(queries)[-1])
        places = open_videos(self.segments, allowed, gone)
        left = sum(video_count(s, p) for s, p in zip(self.segments, places, strict=True))
        few = left <= MIN_PLANNED_SHARE * self.videos
        if self.plan is None or exact or few or (len(ready) >= MIN_BATCH and exact_is_quicker(self.plan, self.rows)):
            return best_among(self.segments, ready, k, places, best_kernel())
        from momentseek.library.scan.planned import search_by_plan

        return search_by_plan(ready, k, places, self.plan, self.coverage(self.plan), best_kernel())

    def coverage(self, plan: Plan) -> CoveredSegments:
        """The segments as a plan covers them."""
        from momentseek.library.scan.planned import CoveredSegments

        known = self._covered
        if known is None or known.covers != plan.covers:
            known = self._covered = CoveredSegments(self.segments, plan.covers)
        return known


def exact_is_quicker(plan: Plan, rows: int) -> bool:
    """Whether scanning so many rows takes less time than the plan does, for one of many queries that are asked at once.

    Then arithmetic decides, and memory only where places are looked up; times are those of one thread.
    """
    if rows < MIN_PLANNED_ROWS:  # somebody wants the plan of a small library, to try it
        return False
    dim, depths = plan.means.dim, plan.depths
    share, means, videos = depths.share, depths.coarse, depths.fine
    if depths.hope is not None:
        share, means, videos = min(share, USUAL_SHARE), min(means, USUAL_MEANS), min(videos, USUAL_VIDEOS)
    places = means + videos * plan.clips
    listed = share * plan.listed.blocks.size
    return rows * dim / SCAN_RATE < listed / LIST_RATE + places * dim / PLACE_RATE + PLAN_SECONDS
