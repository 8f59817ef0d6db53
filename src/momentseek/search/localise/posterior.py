"""The probability of each interval, given that a video holds any number of disjoint ones.

A greedy search for the best interval takes three separate moments for one long one, since even with its gaps the
union stands out more than each. Weighing whole sets of disjoint intervals against each other does not:
the set of three explains the curve better than the union. Sums over all sets take one pass in each direction.
"""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray

MOST = 500.0
"""Sets whose weights sum to more than about this would overflow; the caller keeps below it."""


def interval_posterior(weights: FloatArray) -> FloatArray:
    r"""Probability that [i, j) is one of the intervals.

    ``weights`` (T + 1, T + 1) holds the log likelihood ratio (with prior) of [i, j) against background in the upper
    triangle, −∞ where there is no such interval. A set of intervals, at least one clip apart, has the sum of its
    weights. With F(i) the sum over all sets on the clips before i that leave clip i − 1 out, and B(j) likewise after,

    .. math:: p(i, j) = F(i) \, e^{w_{ij}} \, B(j) / Z

    >>> w = np.full((3, 3), -np.inf)
    >>> w[0, 1] = w[1, 2] = 0.0  # sets: none, first, second (both would touch)
    >>> interval_posterior(w)[0, 1].round(4)
    np.float64(0.3333)
    """
    odds = np.exp(weights)
    forward, last = _sums(np.ascontiguousarray(odds.T))
    backward, _ = _sums(np.ascontiguousarray(odds[::-1, ::-1]))
    total = forward[-1] + last
    result: FloatArray = odds * (forward / total)[:, None]
    result *= backward[::-1]
    return result


def _sums(rows: FloatArray) -> tuple[FloatArray, float]:
    """F(0 … T) and the sets that end with the last clip, given for each end j the odds of its intervals by start."""
    count = len(rows) - 1
    sums = np.zeros(count + 1)
    sums[0] = 1.0
    ended = 0.0
    for j in range(1, count + 1):
        sums[j] = sums[j - 1] + ended
        ended = float(rows[j, :j] @ sums[:j])
    return sums, ended
