"""AxIoU@K: the measure that satisfies both axioms of moment retrieval (AxIoU supplement eq. 10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.measure import Measure, register


@register
@dataclass(frozen=True, kw_only=True)
class AxIoU(Measure):
    r"""The best IoU among the top k, averaged over k = 1 … K.

    .. math:: AxIoU@K = \frac{1}{K} \sum_{k=1}^{K} \max_{j \le k} r(j)

    r(j) is the highest IoU of the prediction at rank j with a relevant moment of its video. Without a
    threshold it rewards every improvement of the best moment (MON-k), and redundant moments do not pay (INV-k).

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    >>> run = Run.from_rows([("q", "v", 5, 10, .9), ("q", "v", 0, 10, .8)])
    >>> [float(parse(f"AxIoU@{k}")(Alignment(run, truth))[0]) for k in (1, 2)]
    [0.5, 0.75]
    """

    NAME = "AxIoU"
    ABOUT = "best IoU so far, averaged over the ranks (AxIoU supplement eq. 10)"

    k: int

    def __call__(self, view: Alignment) -> FloatArray:
        best = np.maximum.accumulate(view.by_rank(view.best_iou(), min(self.k, view.longest)), axis=1)
        mean: FloatArray = (best.sum(axis=1) + best[:, -1] * (self.k - best.shape[1])) / self.k
        return mean
