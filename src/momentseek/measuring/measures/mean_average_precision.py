"""mAP: detection-style average precision, as ActivityNet and QVHighlights compute it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.measuring.measures.alignment import Alignment, Videos, passes
from momentseek.measuring.measures.matching import greedy
from momentseek.measuring.measures.measure import LengthRange, Measure, in_range, register

THRESHOLDS = tuple(round(0.5 + 0.05 * i, 2) for i in range(10))


@register
@dataclass(frozen=True, kw_only=True)
class MeanAveragePrecision(Measure):
    r"""Area under the interpolated precision–recall curve; without an IoU, the mean over 0.5, 0.55, …, 0.95.

    The first K predictions of the list (10 by default) are sorted by score; each takes the free moment it
    overlaps most, if the IoU passes. Precision is made monotone from the right (VOC 2011) and summed over the
    steps of recall. Moments outside ``length`` are left out, but predictions are not (QVHighlights' evaluator).

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("q", "v", 0, 10, 1), ("q", "v", 20, 30, 1)])
    >>> run = Run.from_rows([("q", "v", 0, 10, .9), ("q", "v", 50, 60, .8), ("q", "v", 20, 30, .7)])
    >>> round(float(parse("mAP[IoU>=0.5]")(Alignment(run, truth))[0]), 4)
    0.8333
    """

    NAME = "mAP"
    ABOUT = "interpolated average precision over detected moments (ActivityNet, QVHighlights)"

    k: int = 10
    iou: float | None = None
    strict: bool = False
    videos: Videos = "same"
    length: LengthRange = "full"

    def __call__(self, view: Alignment) -> FloatArray:
        wanted = THRESHOLDS if self.iou is None else (self.iou,)
        per_threshold = [
            view.once(("AP", t, self.k, self.strict, self.videos, self.length), lambda t=t: self._at(view, t))  # type: ignore[misc]
            for t in wanted
        ]
        mean: FloatArray = np.mean(per_threshold, axis=0)
        return mean

    def _at(self, view: Alignment, threshold: float) -> FloatArray:
        counted, queries = in_range(view.truth, self.length)
        position, row, judged, overlap = view.once(("by score", self.k, self.videos), lambda: self._candidates(view))
        good = passes(overlap, threshold, self.strict) & (counted & (view.truth.relevance > 0))[judged]
        taken = greedy(row[good], judged[good], len(position), len(view.truth.video))
        rank = _rank_in_query(view.query[position])
        hits = np.zeros((view.queries, int(rank.max(initial=0)) + 1))
        hits[view.query[position], rank] = taken >= 0
        positives = np.bincount(
            view.truth.row_query[counted & (view.truth.relevance > 0)], minlength=view.queries
        ).astype(np.float64)
        found = np.cumsum(hits, axis=1)
        precision = found / np.arange(1, hits.shape[1] + 1)
        envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        # Recall rises by 1/positives at each hit and nowhere else.
        area = (envelope * hits).sum(axis=1)
        values: FloatArray = np.divide(area, positives, out=np.zeros(view.queries), where=positives > 0)
        values[~queries] = np.nan
        return values

    def _candidates(self, view: Alignment) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return the top K predictions by descending score, and their moments by descending IoU (ties: last first)."""
        top = np.flatnonzero(view.rank < self.k)
        position = top[np.lexsort((-view.score[top], view.query[top]))]
        number = np.full(len(view.query), -1, dtype=np.int64)
        number[position] = np.arange(len(position))
        pairs = view.pairs("union", self.videos)
        row = number[pairs.row]
        order = np.lexsort((-pairs.judged, -pairs.iou, row))
        order = order[row[order] >= 0]
        return position, row[order], pairs.judged[order], pairs.iou[order].astype(np.float64)


def _rank_in_query(query: IntArray) -> IntArray:
    """Return the position of each entry within its sequence of equal queries."""
    start = np.flatnonzero(np.append(True, query[1:] != query[:-1])[: len(query)])
    return np.arange(len(query)) - np.repeat(start, np.diff(np.append(start, len(query))))
