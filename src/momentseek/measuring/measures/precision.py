"""AP@K[IoU>m]: the average precision that the AxIoU paper analyses (supplement eq. 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.measure import Measure, register


@register
@dataclass(frozen=True, kw_only=True)
class AveragePrecision(Measure):
    r"""Precision at k, averaged over all k up to K; duplicates of one moment all count.

    .. math:: AP@K = \frac{1}{K} \sum_{k=1}^{K} \frac{1}{k} \sum_{j=1}^{k} \mathbb{1}\{r(j) > m\}

    This is not the detection-style AP of ActivityNet and QVHighlights: that one is ``mAP``.

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    >>> run = Run.from_rows([("q", "v", 0, 2, .9), ("q", "v", 0, 10, .8)])
    >>> float(parse("AP@2[IoU>0.5]")(Alignment(run, truth))[0])
    0.25
    """

    NAME = "AP"
    ABOUT = "precision averaged over the ranks (AxIoU supplement eq. 4)"

    k: int
    iou: float
    strict: bool = True

    def __call__(self, view: Alignment) -> FloatArray:
        found = np.cumsum(view.by_rank(view.matches(self.iou, self.strict), min(self.k, view.longest)), axis=1)
        seen = found.shape[1]
        total = (found / np.arange(1, seen + 1)).sum(axis=1)
        # Beyond the longest list nothing more is found, and precision falls as 1/k.
        mean: FloatArray = (total + found[:, -1] * (1 / np.arange(seen + 1, self.k + 1)).sum()) / self.k
        return mean
