"""`whole`: the whole video as one span; what searching for videos, not moments, would answer."""

from __future__ import annotations

import numpy as np

from momentseek.search.localise.curve import Curve
from momentseek.search.localise.registry import register
from momentseek.search.localise.spans import Spans


@register("whole")
def whole(curve: Curve) -> Spans:
    """All of it, scored by its best clip.

    >>> spans = whole(Curve.regular([0.1, 0.5, 0.1], seconds=2))
    >>> spans.start.tolist(), spans.end.tolist(), spans.peak.tolist()
    ([0.0], [6.0], [3.0])
    """
    return Spans.of_clips(curve, np.array([0]), np.array([len(curve)]), [curve.scores.max()])
