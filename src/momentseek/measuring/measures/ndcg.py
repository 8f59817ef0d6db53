"""NDCG@K, IoU>=μ: graded and rank-aware; duplicates do not count (TVR-Ranking §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.moments.judgements import MAX_RELEVANCE
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.matching import sum_best_gains, sum_matched_gains
from momentseek.measuring.measures.measure import Measure, register


@register
@dataclass(frozen=True, kw_only=True)
class NDCG(Measure):
    r"""Discounted gain of the matched moments, divided by that of the ideal ranking of the judged moments.

    .. math:: DCG@K = \sum_{i=1}^{K} \frac{g(rel_i)}{\log_2(i + 1)}, \qquad NDCG@K = DCG@K / IDCG@K

    :math:`rel_i` is the relevance of the moment matched by the prediction at rank i (0 if none): predictions are
    taken in rank order, each consumes the remaining judged moment of its video that it overlaps most, if the
    IoU passes μ. The ideal takes the K most relevant judged moments, matched or not. TVR-Ranking §4, eq. 1.

    The paper's text has linear gain and ``>=``; its code gains 2^rel − 1 and compares with ``>``; SPR's code
    drops moments of relevance 0 first and skips queries that have no others.

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("q", "v", 0, 10, 4), ("q", "w", 0, 10, 2), ("q", "v", 40, 50, 2)])
    >>> run = Run.from_rows([("q", "w", 0, 9, .9), ("q", "v", 1, 10, .8), ("q", "x", 0, 9, .7)])
    >>> [round(float(parse(f"NDCG@3[IoU>=0.5{gain}]")(Alignment(run, truth))[0]), 4) for gain in ("", ",gain=exp2")]
    [0.7224, 0.6777]
    """

    NAME = "NDCG"
    ABOUT = "normalised discounted cumulative gain over greedily matched moments (TVR-Ranking §4)"

    k: int
    iou: float
    strict: bool = False
    gain: Literal["linear", "exp2"] = "linear"
    zeros: Literal["absorb", "ignore"] = "absorb"
    """Whether judged moments of relevance 0 can be matched (and so absorb a prediction)."""
    empty: Literal["zero", "skip", "error"] = "zero"
    """How a query without any relevant moment counts."""

    def __call__(self, view: Alignment) -> FloatArray:
        matched = (self.iou, self.strict, self.zeros, self.gain)
        dcg = upto(view.once(("DCG", matched), lambda: self._matched_dcg(view)), self.k)
        ideal = upto(view.once(("ideal DCG", self.gain), lambda: self._ideal_dcg(view)), self.k)
        values = np.divide(dcg, ideal, out=np.zeros(view.queries), where=ideal > 0)
        if self.empty != "zero" and (ideal == 0).any():
            if self.empty == "error":
                truth = view.truth
                which = truth.query_ids[int(np.flatnonzero(ideal == 0)[0])]
                raise MomentseekError(f"{truth.source}: query {which} has no relevant moment, so NDCG is undefined")
            values[ideal == 0] = np.nan
        return values

    def _matched_dcg(self, view: Alignment) -> FloatArray:
        """Return DCG@1, DCG@2, … of every query, (queries, ranks)."""
        absorb = self.zeros == "absorb"
        return sum_matched_gains(view, self.iou, self._gains(view.longest), strict=self.strict, absorb=absorb)

    def _ideal_dcg(self, view: Alignment) -> FloatArray:
        """Return the same for the judged moments in the ideal order."""
        return sum_best_gains(view.truth, self._gains(int(view.truth.counts.max(initial=1))))

    def _gains(self, ranks: int) -> FloatArray:
        """Return the gain of a moment by its relevance and its rank, (grades, ranks)."""
        grade = np.arange(MAX_RELEVANCE + 1.0)
        gain = np.exp2(grade) - 1 if self.gain == "exp2" else grade
        return np.asarray(gain[:, None] / np.log2(np.arange(2, ranks + 2)), np.float64)


def upto(dcg: FloatArray, k: int) -> FloatArray:
    """Return DCG@k of every query, from its DCGs at all ranks."""
    return dcg[:, min(k, dcg.shape[1]) - 1]
