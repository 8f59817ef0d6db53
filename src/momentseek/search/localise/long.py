"""Curves of any length: a ten-hour video is looked at only around its best peaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.search.localise.curve import Background, Curve
from momentseek.search.localise.moment_map import MAP
from momentseek.search.localise.registry import DEFAULT, localiser
from momentseek.search.localise.spans import Spans, suppress

LONGEST = 400
"""Clips that a localiser gets to see at once: ten minutes of clips of 1.5 s."""
LIMIT = 5


def localise(curve: Curve, name: str = DEFAULT, limit: int = LIMIT) -> Spans:
    """The best ``limit`` spans of a curve by the localiser ``name``, near-duplicates suppressed.

    A curve longer than :data:`LONGEST` clips is first cut into neighbourhoods of its best peaks, so that time and
    memory grow with the number of clips only as reading them does. The neighbourhoods may touch but never overlap.

    >>> scores = np.full(24_000, 0.1)
    >>> scores[[*range(600, 620), *range(9_000, 9_010)]] = 0.3
    >>> spans = localise(Curve.regular(scores, seconds=1.5), "watershed", limit=2)
    >>> spans.start.tolist(), spans.end.tolist()
    ([900.0, 13500.0], [930.0, 13515.0])
    """
    propose = localiser(name)
    if len(curve) <= LONGEST or (name == MAP and curve.moments is not None):
        return suppress(propose(curve), limit=limit)
    if curve.level is None:
        curve = replace(curve, level=Background.of(curve.scores))
    parts = [propose(curve.part(*place)) for place in neighbourhoods(curve, limit)]
    return suppress(Spans.joined(parts), limit=limit)


def neighbourhoods(curve: Curve, count: int) -> list[tuple[int, int]]:
    """Up to ``count`` disjoint stretches of :data:`LONGEST` clips at most, about the best peaks of the curve."""
    smooth: FloatArray = np.convolve(curve.scores.astype(np.float64), (0.25, 0.5, 0.25), mode="same")
    smooth[[0, -1]] /= 0.75  # the window hangs over the edge there
    free = np.ones(len(curve), dtype=bool)
    places: list[tuple[int, int]] = []
    while free.any() and len(places) < count:
        peak = int(np.argmax(np.where(free, smooth, -np.inf)))
        first, last = max(0, peak - LONGEST // 2), min(len(curve), peak + LONGEST // 2)
        taken = np.flatnonzero(~free[first:last]) + first
        first = max((int(i) + 1 for i in taken if i < peak), default=first)
        last = min((int(i) for i in taken if i > peak), default=last)
        free[first:last] = False
        places.append((first, last))
    return places
