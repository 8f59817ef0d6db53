"""A run aligned with its truth: every prediction with the judged moments it could match.

All measures are computed from an alignment. The expensive parts (the join of predictions and judged moments of the same
query and video, their overlaps, the greedy matching) are computed once for all measures, as arrays over all queries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray, positions_of, stable_order
from momentseek.core.moments.judgements import MAX_RELEVANCE, Judgements
from momentseek.core.moments.moment import iou, iou_hull
from momentseek.core.moments.run import Run

Task = Literal["VCMR", "SVMR", "VR"]
Overlap = Literal["union", "hull", "hull32"]
Videos = Literal["same", "ignore"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OverlapPairs:
    """Pairs of a prediction and a judged moment of the same query and video.

    Pairs are sorted by prediction (``row``), then by descending relevance of the judged moment.
    """

    row: IntArray
    judged: IntArray
    iou: NDArray[np.floating[Any]]


class Alignment:
    """All predictions for judged queries, in rank order.

    ``query`` (its position in the truth), ``rank`` (from 0), ``video`` (its position in the truth's videos, −1 if it
    has no judged moment) and ``row`` (the prediction's row in the run) have one entry per prediction.
    """

    def __init__(self, run: Run, truth: Judgements, depth: int | None = None) -> None:
        """Align a run with its truth, using only the first ``depth`` predictions of each query (None: all)."""
        self.run = run
        self.truth = truth
        position = np.fromiter(map(truth.position.get, run.query_ids, repeat(-1)), np.int64, len(run.query_ids))
        first, counts = run.offsets[:-1], np.where(position >= 0, run.counts, 0)
        if depth is not None:
            counts = np.minimum(counts, depth)
        self.query: IntArray = np.repeat(position, counts)
        self.rank: IntArray = np.arange(len(self.query))
        self.rank -= np.repeat(np.cumsum(counts) - counts, counts)
        self.row: IntArray = np.repeat(first, counts)
        self.row += self.rank
        video = np.fromiter(map(truth.video_code.get, run.videos, repeat(-1)), np.int64, len(run.videos))
        self.video: IntArray = video[run.video[self.row]]
        self._known: dict[object, Any] = {}

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """Return the value of ``compute``, cached under ``key``."""
        if key not in self._known:
            self._known[key] = compute()
        value: T = self._known[key]
        return value

    @cached_property
    def start(self) -> FloatArray:
        """Start of every prediction, in seconds."""
        return self.run.start[self.row]

    @cached_property
    def end(self) -> FloatArray:
        """End of every prediction, in seconds."""
        return self.run.end[self.row]

    @cached_property
    def score(self) -> FloatArray:
        """The run's score of every prediction."""
        return self.run.score[self.row]

    @property
    def queries(self) -> int:
        """Number of judged queries."""
        return len(self.truth)

    @cached_property
    def longest(self) -> int:
        """Length of the longest list, at least 1."""
        return int(self.rank.max(initial=0)) + 1

    def has_predictions(self) -> BoolArray:
        """Whether the run has at least one prediction, for each judged query."""
        present = np.zeros(self.queries, dtype=bool)
        present[self.query] = True
        return present

    def restrict(self, task: Task, depth: int | None) -> Alignment:
        """Keep the first ``depth`` predictions; for SVMR only those in a video with a relevant moment, ranked again."""
        if depth is None and task != "SVMR":
            return self
        return self.once(("restricted", task, depth), lambda: self._restrict(task, depth))

    def _restrict(self, task: Task, depth: int | None) -> Alignment:
        keep = np.ones(len(self.query), dtype=bool) if depth is None else self.rank < depth
        if task == "SVMR":
            keep &= self.in_judged_video()
        part = Alignment(self.run, self.truth)
        part.query, part.video, part.row = self.query[keep], self.video[keep], self.row[keep]
        # Rows of a query are adjacent, so a row's new rank is its distance from its query's first row.
        first = np.full(self.queries, len(part.query), dtype=np.int64)
        np.minimum.at(first, part.query, np.arange(len(part.query)))
        part.rank = np.arange(len(part.query)) - first[part.query]
        return part

    def in_judged_video(self) -> BoolArray:
        """Whether its video has a relevant moment of its query, for each prediction."""
        truth = self.truth
        relevant = truth.relevance > 0
        keys = np.unique(truth.row_query[relevant] * len(truth.videos) + truth.video[relevant])
        wanted = np.where(self.video >= 0, self.query * len(truth.videos) + self.video, -1)
        return np.isin(wanted, keys)

    def pairs(self, overlap: Overlap = "union", videos: Videos = "same") -> OverlapPairs:
        """Return every prediction with every judged moment of its query (in the same video), and their IoU."""
        return self.once(("pairs", overlap, videos), lambda: self._pairs(overlap, videos))

    def _pairs(self, overlap: Overlap, videos: Videos) -> OverlapPairs:
        row, judged = self.once(("joined", videos), lambda: self._join(videos))
        rows = self.row[row]
        times = (self.run.start[rows], self.run.end[rows], self.truth.start[judged], self.truth.end[judged])
        if overlap == "union":
            return OverlapPairs(row, judged, iou(*times))
        return OverlapPairs(row, judged, iou_hull(*times, dtype=np.float64 if overlap == "hull" else np.float32))

    def _join(self, videos: Videos) -> tuple[IntArray, IntArray]:
        truth = self.truth
        if videos == "same":
            judged_key = truth.row_query * len(truth.videos) + truth.video
            key = self.query * len(truth.videos) + self.video
            rows = np.flatnonzero(self.video >= 0)
            key = key[rows]
        else:
            judged_key, key, rows = truth.row_query, self.query, np.arange(len(self.query))
        if not len(judged_key) or not len(key):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        # Ties in IoU go to the more relevant moment, then to file order: sort by relevance, stably.
        order = stable_order(judged_key * (MAX_RELEVANCE + 1) + (MAX_RELEVANCE - truth.relevance))
        judged_key = judged_key[order]
        first = np.flatnonzero(np.append(True, judged_key[1:] != judged_key[:-1]))
        groups, size = judged_key[first], np.diff(np.append(first, len(judged_key)))
        group = positions_of(key, groups)
        matched = np.flatnonzero(group >= 0)
        group = group[matched]
        reps = size[group]
        ends = np.cumsum(reps)
        row = np.repeat(rows[matched], reps)
        return row, order[np.repeat(first[group] - ends + reps, reps) + np.arange(len(row))]

    def best_iou(self, overlap: Overlap = "union", videos: Videos = "same") -> NDArray[np.floating[Any]]:
        """Return the highest IoU of each prediction with a relevant moment of its query; 0 if there is none."""

        def compute() -> NDArray[np.floating[Any]]:
            pairs = self.pairs(overlap, videos)
            relevant = self.truth.relevance[pairs.judged] > 0
            best = np.zeros(len(self.query), dtype=pairs.iou.dtype)
            np.maximum.at(best, pairs.row[relevant], pairs.iou[relevant])
            return best

        return self.once(("best", overlap, videos), compute)

    def matches(self, threshold: float, strict: bool, overlap: Overlap = "union", videos: Videos = "same") -> BoolArray:
        """Whether each prediction passes the threshold with a relevant moment (of its own video)."""
        if strict or threshold > 0:
            return passes(self.best_iou(overlap, videos), threshold, strict)
        pairs = self.pairs(overlap, videos)
        paired = np.zeros(len(self.query), dtype=bool)
        paired[pairs.row[self.truth.relevance[pairs.judged] > 0]] = True
        return paired

    def by_rank(self, values: NDArray[Any], k: int) -> FloatArray:
        """Arrange per-prediction values as a (queries, k) matrix, with 0 beyond the end of a list."""
        dense = np.zeros((self.queries, k))
        top = self.rank < k
        dense[self.query[top], self.rank[top]] = values[top]
        return dense


def passes(overlap: NDArray[np.floating[Any]], threshold: float, strict: bool) -> BoolArray:
    """Compare ``overlap > threshold`` or ``>=``, in the precision of ``overlap``."""
    limit = overlap.dtype.type(threshold)
    result: BoolArray = overlap > limit if strict else overlap >= limit
    return result
