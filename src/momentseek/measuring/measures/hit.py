"""HIT@1[level=…]: is the most salient clip a highlight (QVHighlights)?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.measure import Measure, register
from momentseek.measuring.measures.saliency import Level, predicted_scores, true_highlights


@register
@dataclass(frozen=True, kw_only=True)
class HitRate(Measure):
    """1 if any annotator rates the highest-scored 2 s clip at least fair (2), good (3) or very good (4).

    A clip beyond the video's last one is a miss.
    """

    NAME = "HIT"
    ABOUT = "is the clip with the highest saliency a highlight (QVHighlights)"

    k: int = 1
    level: Level = "verygood"

    def __post_init__(self) -> None:
        if self.k != 1:
            raise MomentseekError(f"measure {self.name}: HIT is defined for the first clip only; use HIT@1")

    def __call__(self, view: Alignment) -> FloatArray:
        truth, clips = true_highlights(view, self.level)
        scores, lengths = predicted_scores(view, -np.inf)
        if not scores.shape[1]:
            return np.zeros(view.queries)
        top = scores.argmax(axis=1)
        inside = (top < clips) & (lengths > 0)
        values = np.zeros(view.queries)
        values[inside] = truth[np.flatnonzero(inside), top[inside]].any(axis=1)
        return values
