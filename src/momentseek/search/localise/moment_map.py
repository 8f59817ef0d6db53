"""`map`: the candidate moments a trained map model has scored; the default where MMN or CroCs made the vectors."""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import IntArray
from momentseek.ranking.suppress import suppress
from momentseek.search.localise.curve import Curve, Moments
from momentseek.search.localise.registry import register
from momentseek.search.localise.scenes import scenes
from momentseek.search.localise.spans import Spans

MAP = "map"
CANDIDATES = 60
"""Moments of one video that are proposed."""


@register(MAP)
def moment_map(curve: Curve) -> Spans:
    """The model's best moments, near-duplicates left out; what `scenes` finds where no such model made the vectors.

    >>> known = Moments(np.array([0.0, 3.0]), np.array([3.0, 4.5]), np.array([-0.9, -0.2]), np.zeros(2))
    >>> spans = moment_map(Curve(np.float32([0, 0, 1]), np.arange(4) * 1.5, moments=known))
    >>> spans.start.tolist(), spans.peak.tolist()
    ([3.0, 0.0], [3.75, 0.75])
    """
    moments = curve.moments
    if moments is None or not len(moments.start):
        return scenes(curve)
    best = chosen(moments, CANDIDATES)
    start, end = moments.start[best], moments.end[best]
    return Spans.ranked(start, end, moments.score[best], [peak(curve, *span) for span in zip(start, end, strict=True)])


def chosen(moments: Moments, limit: int, iou: float = 0.5) -> IntArray:
    """Which moments are told: the best ``limit`` of those that do not overlap a better one by more than ``iou``.

    >>> known = Moments(np.array([0.0, 0.0, 6.0]), np.array([3.0, 4.5, 9.0]), np.array([-1, -0.5, -2]), np.zeros(3))
    >>> chosen(known, 2).tolist()
    [1, 2]
    """
    order = np.lexsort((moments.end, moments.start, -moments.score))
    stay = suppress(moments.start[order], moments.end[order], iou, limit)
    result: IntArray = order[stay].astype(np.int64)
    return result


def peak(curve: Curve, start: float, end: float) -> float:
    """The middle of the best clip inside a moment: the frame to show."""
    inside = np.flatnonzero((curve.middles >= start) & (curve.middles < end))
    if not len(inside):
        return (start + end) / 2
    return float(curve.middles[inside[np.argmax(curve.scores[inside])]])
