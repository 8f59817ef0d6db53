"""From what a model found in each video, spans of clips or moments, to the best moments of each query, in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.ranking import EndTime, Scores, Spans, merge, moments_of, suppress, top
from momentseek.models.inference.first_stage import RankedVideos
from momentseek.models.inference.second_stage import ClipTimes, TimedMoments

DEPTH_GROWTH = 4
"""Factor by which more spans are looked at where suppression left too few moments."""
MAX_MERGED_SPANS = 1 << 22
"""Spans of several queries that are ranked together."""
MomentArrays = tuple[IntArray, FloatArray, FloatArray, FloatArray]
"""Videos, starts, ends and scores of moments, each ``(queries, k)``; a score of minus infinity where there is none."""


@dataclass(frozen=True, eq=False)
class ClipSpans:
    """Spans of clips, whose times are those of the clips' edges."""

    spans: Spans
    clips: ClipTimes
    end_time: EndTime

    @property
    def score(self) -> Scores:
        """(queries, videos, spans)."""
        return self.spans.score

    def times(
        self, query: IntArray, column: IntArray, place: IntArray, video: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """From the begin of the first clip to the end of the last."""
        first, last = (
            np.where(video >= 0, x[query, column, place], 0).astype(np.int64)
            for x in (self.spans.first, self.spans.last)
        )
        begin = self.clips.place[np.maximum(video, 0)]
        return moments_of(first, last, self.clips.edges, begin, self.end_time)


Candidates = ClipSpans | TimedMoments
"""What a model found in the videos of each query, with the times of any of it."""


def rank_moments(
    spans: Candidates,
    candidates: RankedVideos,
    alpha: float,
    k: int,
    nms: float | None,
) -> MomentArrays:
    """The ``k`` best candidates of each query's videos, as moments in seconds.

    With ``nms``, moments of a video that overlap a better one by more are dropped, and the ``k`` best of the others
    stay. What stays depends on better moments only, so the best few of a query are looked at first, and more of them
    only for queries that are left with too few.
    """
    each = max(1, MAX_MERGED_SPANS // max(1, spans.score[:1].size))
    found = []
    for first in range(0, len(candidates), each):
        rows = np.arange(first, min(first + each, len(candidates)))
        depth = k if nms is None else DEPTH_GROWTH * k
        while len(rows):
            moments = _merge_spans(spans, candidates, rows, alpha, depth)
            enough = np.ones(len(rows), dtype=bool)
            if nms is not None:
                complete = (moments[3][:, -1] == -np.inf) | (depth >= spans.score[0].size)
                moments = _suppress_overlaps(moments, nms, k)
                enough = complete | (moments[3][:, -1] > -np.inf)
            found.append((rows[enough], cast(MomentArrays, tuple(x[enough] for x in moments))))
            rows, depth = rows[~enough], DEPTH_GROWTH * depth
    order = np.argsort(np.concatenate([rows for rows, _ in found]), kind="stable")
    return join_parts([moments for _, moments in found], min(k, spans.score[0].size), order)


def _merge_spans(spans: Candidates, candidates: RankedVideos, rows: IntArray, alpha: float, depth: int) -> MomentArrays:
    """The ``depth`` best candidates of all videos of the queries at ``rows``, best first."""
    scores = spans.score[rows]
    if alpha:
        column, span, score = merge(scores, candidates.score[rows], alpha, depth)
    else:  # the same, without a copy in double precision
        places, best = top(scores.reshape(len(rows), -1), depth)
        column, span = np.divmod(places, max(1, scores.shape[2]))
        score = best.astype(np.float64)
    here = rows[:, None]
    real = score > -np.inf
    video = np.where(real, candidates.video[here, column], -1)
    start, end = spans.times(here, column, span, video)
    return np.maximum(video, 0), start, end, score


def _suppress_overlaps(moments: MomentArrays, nms: float, k: int) -> MomentArrays:
    """The first ``k`` moments that overlap no better one of their video by more than ``nms``."""
    video, start, end, score = moments
    kept = suppress(start, end, nms, limit=k, video=video) & (score > -np.inf)
    order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
    score = np.where(kept, score, -np.inf)
    return cast(MomentArrays, tuple(np.take_along_axis(x, order, axis=1) for x in (video, start, end, score)))


def final_queries(spans: Candidates, candidates: RankedVideos, alpha: float, found: MomentArrays, k: int) -> BoolArray:
    """(queries,): whether a query's moments would stay the same if more spans of each video were looked at.

    A span that was not looked at scores at most as high as the last one of its video that was.
    """
    floor = spans.score[:, :, -1].astype(np.float64)
    floor = (floor if not alpha else floor + alpha * candidates.score).max(axis=1, initial=-np.inf)
    score = found[3]
    worst = score[:, k - 1] if score.shape[1] >= k else np.full(len(score), -np.inf)
    return (floor == -np.inf) | (worst > floor)


def join_parts(parts: Sequence[MomentArrays], width: int, order: IntArray) -> MomentArrays:
    """Parts one below the other, each widened by places without a moment, with their rows put in order."""
    columns = []
    for i in range(4):
        blocks = []
        for part in parts:
            fill = -np.inf if i == 3 else 0
            blocks.append(np.pad(part[i], ((0, 0), (0, width - part[i].shape[1])), constant_values=fill))
        columns.append(np.concatenate(blocks)[order])
    return cast(MomentArrays, tuple(columns))
