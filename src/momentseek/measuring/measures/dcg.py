"""DCG@K: discounted cumulative gain with IoU as relevance (AxIoU supplement eq. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.measure import Measure, register


@register
@dataclass(frozen=True, kw_only=True)
class DCG(Measure):
    r"""Gain of every prediction's IoU, discounted by rank; not normalised, so it can exceed 1.

    .. math:: DCG@K = \sum_{k=1}^{K} g(r(k)) / d(k)

    g is the IoU itself or 2^r − 1; d is log2(k + 1) or k. It rewards redundant moments (breaks INV-k).

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    >>> run = Run.from_rows([("q", "v", 0, 5, .9), ("q", "v", 0, 10, .8)])
    >>> [round(float(parse(m)(Alignment(run, truth))[0]), 4) for m in ("DCG@2", "DCG@2[discount=rank]")]
    [1.1309, 1.0]
    """

    NAME = "DCG"
    ABOUT = "discounted cumulative gain of the IoUs (AxIoU supplement eq. 7)"

    k: int
    gain: Literal["linear", "exp2"] = "linear"
    discount: Literal["log2", "rank"] = "log2"

    def __call__(self, view: Alignment) -> FloatArray:
        relevance = view.by_rank(view.best_iou(), min(self.k, view.longest))
        gain = np.exp2(relevance) - 1 if self.gain == "exp2" else relevance
        rank = np.arange(1, gain.shape[1] + 1)
        total: FloatArray = gain @ (1 / (np.log2(rank + 1) if self.discount == "log2" else rank))
        return total
