"""mIoU: the IoU of the first prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.alignment import Alignment, Overlap, Videos
from momentseek.measuring.measures.measure import Measure, register


@register
@dataclass(frozen=True, kw_only=True)
class MeanIoU(Measure):
    """IoU of the first prediction with the relevant moment it overlaps most.

    >>> from momentseek.measuring.measures import parse
    >>> from momentseek import Judgements, Run
    >>> truth = Judgements.from_rows([("q", "v", 0, 10, 1)])
    >>> float(parse("mIoU")(Alignment(Run.from_rows([("q", "v", 0, 5, .9)]), truth))[0])
    0.5
    """

    NAME = "mIoU"
    ABOUT = "IoU of the first prediction"

    overlap: Overlap = "union"
    videos: Videos = "same"

    @property
    def max_rank(self) -> int:
        """Number of ranks it uses: only the first."""
        return 1

    def __call__(self, view: Alignment) -> FloatArray:
        return view.by_rank(view.best_iou(self.overlap, self.videos), 1)[:, 0].astype(np.float64)
