"""dR@n[IoU>=m]: recall discounted by how far the boundaries are off (debiased grounding §3.2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.alignment import Alignment, OverlapPairs, passes
from momentseek.measuring.measures.measure import Measure, register


@register
@dataclass(frozen=True, kw_only=True)
class DiscountedRecall(Measure):
    r"""Recall times the closeness of start and end, both relative to the video's length.

    .. math:: dR@n = r \cdot \alpha^s \alpha^e, \qquad \alpha^* = 1 - |p^* - g^*|

    with boundaries divided by the video's duration (eq. 2). The paper does not say which prediction gives α
    for n > 1: by default the highest-ranked one that passes; ``alpha=best`` takes the closest passing one.
    Boundaries are clipped to the video unless ``clip=no``; α is never negative. If a truth requires agreement
    (DiDeMo), a prediction passes as it does for R, and α is that of the annotator it overlaps most.

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_groups(["q"], [1], ["v"], [10], [20], durations={"v": 100})
    >>> run = Run.from_rows([("q", "v", 10, 30, .9), ("q", "v", 10, 20, .8)])
    >>> view = Alignment(run, truth)
    >>> [round(float(parse(m)(view)[0]), 3) for m in ("dR@1[IoU>=0.5]", "dR@2[IoU>=0.5]", "dR@2[IoU>=0.5,alpha=best]")]
    [0.9, 0.9, 1.0]
    """

    NAME = "dR"
    ABOUT = "recall discounted by the distance of the boundaries (debiased grounding §3.2.2)"

    k: int
    iou: float
    strict: bool = False
    alpha: Literal["first", "best"] = "first"
    clip: bool = True

    def __call__(self, view: Alignment) -> FloatArray:
        pairs = view.pairs()
        good = (
            passes(pairs.iou, self.iou, self.strict)
            & (view.truth.relevance[pairs.judged] > 0)
            & (view.rank[pairs.row] < self.k)
        )
        if view.truth.agreement is not None:
            matched = np.bincount(pairs.row[good], minlength=len(view.query))
            good &= (matched >= view.truth.agreement[view.query])[pairs.row]
        row, judged, overlap = pairs.row[good], pairs.judged[good], pairs.iou[good]
        closeness = self._closeness(view, OverlapPairs(row, judged, overlap))
        query = view.query[row]
        # Last written wins: sort so that the pair that gives α comes last for its query.
        worst_first = np.lexsort((closeness,)) if self.alpha == "best" else np.lexsort((overlap, -view.rank[row]))
        values = np.zeros(view.queries)
        values[query[worst_first]] = closeness[worst_first]
        return values

    def _closeness(self, view: Alignment, pairs: OverlapPairs) -> FloatArray:
        truth = view.truth
        seconds = truth.durations[truth.video[pairs.judged]]
        if np.isnan(seconds).any():
            which = truth.videos[truth.video[pairs.judged[np.isnan(seconds)][0]]]
            raise MomentseekError(
                f"{truth.source}: dR needs the duration of every video, and {which} has none; "
                f"give a file of durations ({parameter('videos')})"
            )
        product = np.ones(len(seconds))
        for predicted, true in ((view.start, truth.start), (view.end, truth.end)):
            p, g = predicted[pairs.row] / seconds, true[pairs.judged] / seconds
            if self.clip:
                p, g = np.clip(p, 0, 1), np.clip(g, 0, 1)
            product *= np.maximum(0.0, 1 - np.abs(p - g))
        return product
