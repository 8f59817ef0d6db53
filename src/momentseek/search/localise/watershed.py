"""`watershed`: flood the curve to a level; each island is a moment.

As the zero-shot baseline of Moment-DETR (Lei et al. 2021) and the simple watershed of Diwan et al. (2023): clips
above a threshold, joined over small gaps, scored by their mean. Where cuts are known a clip counts as the mean of
its shot, which Diwan et al. found to matter most; else as the mean of itself and its neighbours. Several levels are
flooded, since no one threshold on a cosine suits all queries; they lie between this video's median and its peak.
"""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.search.localise.curve import Curve
from momentseek.search.localise.registry import register
from momentseek.search.localise.rise import smoothed
from momentseek.search.localise.runs import bridged, runs
from momentseek.search.localise.scene_edges import cut_edges
from momentseek.search.localise.spans import Spans, suppress

LEVELS = (0.35, 0.5, 0.65)
GAP = 1


@register("watershed")
def watershed(curve: Curve, levels: tuple[float, ...] = LEVELS, gap: int = GAP) -> Spans:
    """Islands above median + level · (peak − median), gaps of up to ``gap`` clips filled.

    >>> spans = watershed(Curve.regular([0.1, 0.1, 0.1, 0.5, 0.5, 0.5, 0.1, 0.1], seconds=2), levels=(0.5,))
    >>> spans.start.tolist(), spans.end.tolist()
    ([6.0], [12.0])
    """
    scores = levelled(curve)
    low, high = float(np.median(scores)), float(scores.max())
    parts = [bridged(*runs(scores >= low + level * (high - low)), gap) for level in levels]
    first, last = (np.concatenate(side) for side in zip(*parts, strict=True))
    sums = np.concatenate(([0.0], np.cumsum(scores)))
    return suppress(Spans.of_clips(curve, first, last, (sums[last] - sums[first]) / (last - first)))


def levelled(curve: Curve) -> FloatArray:
    """Each clip's score as the mean of its shot, or of three clips where no cuts are known."""
    if not len(cut_edges(curve)):
        return smoothed(curve.scores.astype(np.float64), 3)
    edges = np.unique(np.concatenate(([0], cut_edges(curve))))
    size = np.diff(np.append(edges, len(curve)))
    return np.repeat(np.add.reduceat(curve.scores.astype(np.float64), edges) / size, size)
