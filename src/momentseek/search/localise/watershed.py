"""`watershed`: flood the curve to a level; each island is a moment.

As the zero-shot baseline of Moment-DETR (Lei et al. 2021) and the simple watershed of Diwan et al. (2023): clips above
a threshold, joined over small gaps, scored by their mean. Where cuts are known a clip counts as the mean of its shot,
which Diwan et al. found to matter most, otherwise as the mean of itself and its neighbours. Several levels are flooded,
because no single threshold on a cosine suits all queries; they lie between the video's median and its peak.
"""

from __future__ import annotations

import numpy as np

from momentseek.core.moments.arrays import FloatArray, Positions, moving_mean, runs_of_true
from momentseek.search.localise.localiser import LOCALISERS, Curve, Proposals, suppress

FLOOD_LEVELS = (0.35, 0.5, 0.65)
"""Levels that are flooded, as shares of the way from the median to the peak."""
MAX_GAP_CLIPS = 1


@LOCALISERS.register("watershed")
def watershed(curve: Curve, levels: tuple[float, ...] = FLOOD_LEVELS, gap: int = MAX_GAP_CLIPS) -> Proposals:
    """Propose the islands above median + level · (peak − median), gaps of up to ``gap`` clips filled.

    >>> spans = watershed(Curve.regular([0.1, 0.1, 0.1, 0.5, 0.5, 0.5, 0.1, 0.1], seconds=2), levels=(0.5,))
    >>> spans.start.tolist(), spans.end.tolist()
    ([6.0], [12.0])
    """
    scores = smooth_scores(curve)
    low, high = float(np.median(scores)), float(scores.max())
    parts = [bridge_gaps(*runs_of_true(scores >= low + level * (high - low)), gap) for level in levels]
    first, last = (np.concatenate(side) for side in zip(*parts, strict=True))
    sums = np.concatenate(([0.0], np.cumsum(scores)))
    return suppress(Proposals.of_clips(curve, first, last, (sums[last] - sums[first]) / (last - first)))


def smooth_scores(curve: Curve) -> FloatArray:
    """Each clip's score as the mean of its shot, or of three clips if no cuts are known."""
    cuts, _ = curve.cuts
    if not len(cuts):
        return moving_mean(curve.scores.astype(np.float64), 3)
    edges = np.unique(np.concatenate(([0], cuts)))
    size = np.diff(np.append(edges, len(curve)))
    return np.repeat(np.add.reduceat(curve.scores.astype(np.float64), edges) / size, size)


def bridge_gaps(first: Positions, last: Positions, gap: int) -> tuple[Positions, Positions]:
    """Join runs with no more than ``gap`` positions between them.

    >>> bridge_gaps(np.array([0, 3, 9]), np.array([2, 4, 10]), gap=1)
    (array([0, 9]), array([ 4, 10]))
    """
    apart = first[1:] - last[:-1] > gap
    return first[np.concatenate(([True], apart))], last[np.concatenate((apart, [True]))]
