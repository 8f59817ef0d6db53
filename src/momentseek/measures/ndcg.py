"""NDCG@K, IoU>=μ: graded, rank-aware, and blind to duplicates (TVR-Ranking §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.measures.alignment import Alignment
from momentseek.measures.matching import match
from momentseek.measures.measure import Measure, register
from momentseek.moments import MAX_RELEVANCE
from momentseek.moments.arrays import FloatArray, IntArray


@register
@dataclass(frozen=True, kw_only=True)
class NDCG(Measure):
    r"""Discounted gain of the matched moments, over that of the best possible ranking of the judged ones.

    .. math:: DCG@K = \sum_{i=1}^{K} \frac{g(rel_i)}{\log_2(i + 1)}, \qquad NDCG@K = DCG@K / IDCG@K

    :math:`rel_i` is the relevance of the moment matched by the prediction at rank i (0 if none): predictions are
    taken in rank order, each consumes the remaining judged moment of its video that it overlaps most, if the
    IoU passes μ. The ideal takes the K most relevant judged moments, matched or not. TVR-Ranking §4, eq. 1.

    The paper's text has linear gain and ``>=``; its code gains 2^rel − 1 and compares with ``>``; SPR's code
    drops moments of relevance 0 first and skips queries that have no others.

    >>> from momentseek.measures import parse
    >>> from momentseek.moments import Judgements, Run
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
    """What a query without any relevant moment counts as."""

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
        matched = match(view, self.iou, strict=self.strict, absorb=self.zeros == "absorb")
        hit = np.flatnonzero(matched >= 0)
        return self._dcg(view, view.query[hit], view.rank[hit], view.truth.relevance[matched[hit]])

    def _ideal_dcg(self, view: Alignment) -> FloatArray:
        truth = view.truth
        grades = MAX_RELEVANCE + 1
        of_grade = np.bincount(
            truth.row_query * grades + (MAX_RELEVANCE - truth.relevance), minlength=len(truth) * grades
        )
        falling = np.repeat(np.tile(np.arange(MAX_RELEVANCE, -1, -1), len(truth)), of_grade)
        rank = np.arange(len(falling)) - np.repeat(truth.offsets[:-1], truth.counts)
        return self._dcg(view, truth.row_query, rank, falling)

    def _dcg(self, view: Alignment, query: IntArray, rank: IntArray, relevance: NDArray[Any]) -> FloatArray:
        """(queries, ranks): DCG@1, DCG@2, … of every query."""
        ranks = int(rank.max(initial=0)) + 1
        grade = np.arange(MAX_RELEVANCE + 1.0)
        gain = np.exp2(grade) - 1 if self.gain == "exp2" else grade
        discounted = gain[:, None] / np.log2(np.arange(2, ranks + 2))
        dense = np.zeros((view.queries, ranks))
        dense.reshape(-1)[query * ranks + rank] = discounted.reshape(-1)[relevance * np.int64(ranks) + rank]
        # cumsum adds left to right, as the official code's sum does.
        return np.cumsum(dense, axis=1, out=dense)


def upto(dcg: FloatArray, k: int) -> FloatArray:
    """DCG@k of every query, out of all its DCGs."""
    return dcg[:, min(k, dcg.shape[1]) - 1]
