"""The probability of each interval, given that a video holds any number of disjoint ones.

A greedy search for the best interval takes three separate moments for one long one, since even with its gaps the
union stands out more than each. Weighing whole sets of disjoint intervals against each other does not:
the set of three explains the curve better than the union. Sums over all sets take one pass in each direction.
"""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray


def interval_posterior(weights: FloatArray) -> FloatArray:
    r"""Log probability that [i, j) is one of the intervals.

    ``weights`` (T + 1, T + 1) holds the log likelihood ratio (with prior) of [i, j) against background in the upper
    triangle, −∞ where there is no such interval. A set of intervals, at least one clip apart, has the sum of its
    weights. With F(i) the sum over all sets on the clips before i that leave clip i − 1 out, and B(j) likewise after,

    .. math:: p(i, j) = F(i) \, e^{w_{ij}} \, B(j) / Z

    >>> w = np.full((3, 3), -np.inf)
    >>> w[0, 1] = w[1, 2] = 0.0  # sets: none, first, second (both would touch)
    >>> np.exp(interval_posterior(w))[0, 1].round(4)
    np.float64(0.3333)
    """
    forward = _sums(np.ascontiguousarray(weights.T))
    backward = _sums(np.ascontiguousarray(weights[::-1, ::-1]))[::-1]
    ends = forward[:-1] + weights[:-1, -1]
    total = np.logaddexp(forward[-1], _logsum(ends))
    result: FloatArray = forward[:, None] + weights + backward[None, :] - total
    return result


def _sums(rows: FloatArray) -> FloatArray:
    """F(0 … T), given for each end j the weights of its intervals by start."""
    count = len(rows) - 1
    sums = np.full(count + 1, -np.inf)
    sums[0] = 0.0
    ended = -np.inf
    for j in range(1, count + 1):
        sums[j] = np.logaddexp(sums[j - 1], ended)
        ended = _logsum(sums[:j] + rows[j, :j])
    return sums


def _logsum(values: FloatArray) -> float:
    top = values.max()
    if top == -np.inf:
        return -np.inf
    return float(top + np.log(np.exp(values - top).sum()))
