"""``MRR@K[IoU>=m]``: how far down the list the first match stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.measure import Measure, register


@register
@dataclass(frozen=True, kw_only=True)
class ReciprocalRank(Measure):
    """``1 / r`` where r is the rank of the first match among the top K, 0 where there is none."""

    NAME = "MRR"
    ABOUT = "reciprocal rank of the first match (example plug-in)"

    k: int
    iou: float
    strict: bool = False

    def __call__(self, view: Alignment) -> FloatArray:
        depth = min(self.k, view.longest)
        found = view.by_rank(view.matches(self.iou, self.strict), depth)
        values: FloatArray = (found / np.arange(1, depth + 1)).max(axis=1)
        return values
