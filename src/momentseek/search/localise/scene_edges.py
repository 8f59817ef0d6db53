"""Where scenes change: how likely a moment begins or ends between two clips, before looking at the scores.

The evidence is a cut, a change of the clips' vectors, or an end of the video. People describe scenes, so moments
keep to their edges; but not always, hence a bonus (a log prior) and not a rule.
"""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.search.localise.curve import Curve, Floats32
from momentseek.search.localise.runs import Index

CUT, CHANGE, END = 2.5, 2.5, 1.0
"""Log prior of a cut, of the clearest change of vectors, and of the video's own ends."""
WIDTH = 4
"""Clips on either side that are compared."""
CLEAR = 6.0
"""Changes this many deviations above the median count in full."""
SLOPE = 0.6
"""What counts of a change that is not a local maximum: its neighbour is the likelier edge."""


def edge_prior(curve: Curve) -> FloatArray:
    """(T + 1,) log prior, up to a constant, of a moment's edge at each boundary of clips.

    >>> edge_prior(Curve.regular([0.1] * 6, seconds=2, shots=[4.2])).tolist()
    [1.0, 0.0, 2.5, 0.0, 0.0, 0.0, 1.0]
    """
    prior = np.zeros(len(curve) + 1)
    if curve.features is not None and len(curve) > 4:
        prior[1:-1] = CHANGE * clearness(change(curve.features))
    cuts = cut_edges(curve)
    prior[cuts] = np.maximum(prior[cuts], CUT)
    prior[[0, -1]] = END
    return prior


def cut_edges(curve: Curve) -> Index:
    """The boundary each cut belongs to: the one between the two middle frames that it parts."""
    edge = np.searchsorted(curve.middles, curve.shots)
    return edge[(edge > 0) & (edge < len(curve))]


def change(features: Floats32, width: int = WIDTH) -> FloatArray:
    """(T − 1,) squared distance of the mean vectors before and after each inner boundary, over ``width`` clips each.

    At the ends there are fewer clips to average; n₁n₂ / (n₁ + n₂) makes up for their greater scatter.

    >>> change(np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32)).round(3).tolist()
    [0.667, 2.0, 0.667]
    """
    count = len(features)
    sums = np.concatenate((np.zeros((1, features.shape[1])), np.cumsum(features, axis=0, dtype=np.float64)))
    at = np.arange(1, count)
    low, high = np.maximum(at - width, 0), np.minimum(at + width, count)
    before, after = at - low, high - at
    step = (sums[at] - sums[low]) / before[:, None] - (sums[high] - sums[at]) / after[:, None]
    result: FloatArray = (step**2).sum(1) * before * after / (before + after)
    return result


def clearness(values: FloatArray) -> FloatArray:
    """0 … 1: how far changes stand above the usual one, local maxima in full and their slopes in part."""
    middle = np.median(values)
    deviation = 1.4826 * np.median(np.abs(values - middle))
    if deviation <= 1e-9:
        deviation = max(float(np.abs(values - middle).mean()), 1e-9)
    clear = np.clip((values - middle) / deviation / CLEAR, 0.0, 1.0)
    around = np.concatenate(([-np.inf], values, [-np.inf]))
    top = (values >= around[:-2]) & (values > around[2:])
    result: FloatArray = np.where(top, clear, SLOPE * clear)
    return result


def edge_times(curve: Curve) -> FloatArray:
    """(T + 1,) times of the clips' boundaries: that of the (nearest) cut where one falls there, else their own.

    >>> edge_times(Curve.regular([0.1] * 4, seconds=2, shots=[4.2, 4.5])).tolist()
    [0.0, 2.0, 4.2, 6.0, 8.0]
    """
    times = curve.edges.copy()
    edge = np.searchsorted(curve.middles, curve.shots)
    inner = (edge > 0) & (edge < len(curve))
    edge, cut = edge[inner], curve.shots[inner]
    order = np.argsort(-np.abs(cut - curve.edges[edge]), kind="stable")  # the nearest is written last
    times[edge[order]] = cut[order]
    return times
