"""Search by a plan: a coarse list of scene means, then finer means, then exact scores of the videos left.

Only the choice of candidates is approximate. The videos that pass are scored exactly, together with all videos of
segments the plan does not know, so what was added a moment ago is found as surely as in an exact search.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan import coarse
from momentseek.library.scan.exact import BestVideos, OpenVideos, best_among, highest
from momentseek.library.scan.kernels import Kernel
from momentseek.library.scan.means import best_of_videos
from momentseek.library.scan.plan import Depths, Plan
from momentseek.library.scan.queries import QuantisedQueries
from momentseek.library.scan.threads import run_together
from momentseek.library.segments import Segment


def search_by_plan(
    segments: Sequence[Segment],
    queries: QuantisedQueries,
    k: int,
    places: OpenVideos,
    plan: Plan,
    kernel: Kernel,
    depths: Depths | None = None,
) -> BestVideos:
    """The k best videos for each query, of those the plan lets through."""
    depths = depths or plan.depths
    layout = PlanCoverage(segments, places, plan)
    widen = 1 / max(layout.share, 1e-3)  # what is filtered away later must not use up the depth
    count = int(max(depths.coarse, 2 * k) * widen)
    lists = coarse.nearest(plan.listed, queries.vectors, count, depths.share * widen)
    answers: dict[int, BestVideos] = {}

    def answer(i: int) -> None:
        query = queries.part(i, i + 1)
        videos, bounds = best_of_videos(plan.means.owner[lists[i]], plan.means.bounds(lists[i], query))
        is_open = layout.is_open(videos)
        videos, bounds = videos[is_open], bounds[is_open]
        if len(videos) > max(depths.fine, k):
            videos = videos[highest(bounds, max(depths.fine, k))]
        answers[i] = best_among(segments, query, k, layout.places_of(videos), kernel)

    run_together([partial(answer, i) for i in range(len(queries))])
    return join_answers([answers[i] for i in range(len(queries))])


def join_answers(answers: Sequence[BestVideos]) -> BestVideos:
    """The best videos of several queries that were asked one by one; as many of each as there are of all."""
    depth = min((a.ids.shape[1] for a in answers), default=0)
    return BestVideos(
        *(np.concatenate([getattr(a, name)[:, :depth] for a in answers]) for name in ("ids", "scores", "segment", "at"))
    )


class PlanCoverage:
    """Where the plan's videos are in the segments of a search, and which of them may be found."""

    def __init__(self, segments: Sequence[Segment], places: OpenVideos, plan: Plan) -> None:
        index = {segment.name: i for i, segment in enumerate(segments)}
        self._covered = [index[name] for name in plan.covers]
        self._starts = np.concatenate([[0], np.cumsum([len(segments[i].ids) for i in self._covered])])
        self._places = places
        self._open: NDArray[np.bool_] | None = None
        if any(places[i] is not None for i in self._covered):
            self._open = np.zeros(int(self._starts[-1]), bool)
            for start, end, i in zip(self._starts[:-1], self._starts[1:], self._covered, strict=True):
                chosen = places[i]
                self._open[slice(start, end) if chosen is None else start + chosen] = True

    def numbers(self, best: BestVideos) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which of one query's best videos the plan covers, and their numbers in the plan."""
        start = np.full(1 + max([*self._covered, *best.segment[0].tolist()]), -1)
        start[self._covered] = self._starts[:-1]
        first = start[best.segment[0]]
        return first >= 0, first + best.at[0]

    @property
    def share(self) -> float:
        """The share of the plan's videos that may be found."""
        return 1.0 if self._open is None else float(self._open.mean())

    def is_open(self, videos: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Which of some videos, by their numbers in the plan, may be found."""
        return np.ones(len(videos), bool) if self._open is None else self._open[videos]

    def places_of(self, videos: NDArray[np.int64]) -> OpenVideos:
        """Places by segment of some of the plan's videos, and of all open videos in segments that it does not cover."""
        videos = np.sort(videos)
        cuts = np.searchsorted(videos, self._starts)
        out = list(self._places)
        for n, i in enumerate(self._covered):
            out[i] = videos[cuts[n] : cuts[n + 1]] - self._starts[n]
        return out
