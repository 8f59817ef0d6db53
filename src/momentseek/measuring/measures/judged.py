"""Judged@K: the share of the returned moments that have been judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.alignment import Alignment, passes
from momentseek.measuring.measures.measure import Measure, register


@register
@dataclass(frozen=True, kw_only=True)
class JudgedShare(Measure):
    """Share of the top K predictions that overlap a judged moment of any relevance, 0 included.

    Judgements are pooled from some systems' results, so good moments of a new system may be unjudged: a low share
    warns that its other figures are lower bounds. Without an IoU, any overlap counts. The count for a list shorter
    than K is divided by its own length; an empty list gives NaN.

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("q", "v", 0, 10, 0)])
    >>> run = Run.from_rows([("q", "v", 9, 12, .9), ("q", "w", 0, 10, .8)])
    >>> float(parse("Judged@10")(Alignment(run, truth))[0])
    0.5
    """

    NAME = "Judged"
    ABOUT = "share of the top K that overlap a judged moment"

    k: int
    iou: float = 0.0
    strict: bool = True

    def __call__(self, view: Alignment) -> FloatArray:
        pairs = view.pairs()
        judged = np.zeros(len(view.query), dtype=bool)
        judged[pairs.row[passes(pairs.iou, self.iou, self.strict)]] = True
        top = view.rank < self.k
        returned = np.bincount(view.query[top], minlength=view.queries)
        known = np.bincount(view.query[top & judged], minlength=view.queries)
        share: FloatArray = np.divide(known, returned, out=np.full(view.queries, np.nan), where=returned > 0)
        return share
