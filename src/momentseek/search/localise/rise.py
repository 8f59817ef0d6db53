"""The start of a rise: people say a thing begins where the curve starts to climb, not where it is high."""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray

STEP = 0.1
"""Slope per clip, as a share of the curve's range, below which a curve does not climb."""


def smoothed(values: FloatArray, width: int) -> FloatArray:
    """Mean of up to ``width`` neighbours (an odd number), fewer at the ends; along the first axis.

    >>> smoothed(np.array([0.0, 0.0, 3.0, 0.0]), 3).tolist()
    [0.0, 1.0, 1.0, 1.5]
    """
    half = width // 2
    sums = np.concatenate((np.zeros((1, *values.shape[1:]), dtype=np.float64), np.cumsum(values, axis=0, dtype=float)))
    at = np.arange(len(values))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(values))
    count = (high - low).reshape(-1, *([1] * (values.ndim - 1)))
    result: FloatArray = (sums[high] - sums[low]) / count
    return result


def walked_back(values: FloatArray, start: int, step: float = STEP) -> int:
    """The first clip of the climb that leads to ``start`` (TFVTG's dynamic start, on clips instead of frames).

    With f the difference of a clip to the one before: the clip before the start is taken in while its own f, or
    the mean of its last two (the later one twice) or last three, is more than ``step`` of the curve's range. A
    sharp edge stays where it is: the clip before it is low and has not begun to climb.

    >>> walked_back(np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.6, 0.9, 0.9, 0.9]), 6)
    4
    >>> walked_back(np.array([0.0, 0.0, 0.0, 0.9, 0.9, 0.9]), 3)
    3
    """
    least = 3 * step * float(np.ptp(values))
    f = np.diff(values, prepend=values[0])
    i = start
    while i > 0:
        f0, f1, f2 = (float(f[i - n]) if i >= n else 0.0 for n in (1, 2, 3))
        if f0 <= 0 or max(3 * f0, 2 * f0 + f1, f0 + f1 + f2) <= least:
            break
        i -= 1
    return i
