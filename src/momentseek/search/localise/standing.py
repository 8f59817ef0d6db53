"""How a span stands, comparably across videos: the spans of all videos are ranked together by this."""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.search.localise.curve import Background
from momentseek.search.localise.runs import Index

SHY = 4.0
"""Clips' worth of doubt: the mean of few clips is drawn towards what is around them."""
CONTRAST = 5.0
"""How much standing out within the video counts, beside the level itself (measured: docs/localising.md)."""
TRUST = 0.25
"""Power of the belief: it is told from one curve alone, and rather too sure."""


def standing(
    scores: FloatArray, first: Index, last: Index, belief: FloatArray | float = 1.0, level: Background | None = None
) -> FloatArray:
    r"""The level a span is believed to have, plus a share of how far it stands above its video.

    .. math:: o + (1 + c) \, p^{1/4} \, \frac{n}{n + k} \, (m - o)

    with m the mean inside, o outside, n clips and p the belief that there is a moment. Contrast alone would put a
    video with a low background first; the mean alone the videos that resemble every query, and lone noisy clips.
    Where the library's mean is known, o is at least that: a video whose rest is unlike the query gains nothing by it.

    >>> s = np.array([0.1, 0.1, 0.3, 0.3, 0.1, 0.1])
    >>> standing(s, np.array([2, 2]), np.array([4, 3])).round(3).tolist()  # both clips stand better than one
    [0.5, 0.332]
    """
    sums = np.concatenate(([0.0], np.cumsum(scores)))
    size = last - first
    rest = len(scores) - size
    inside = (sums[last] - sums[first]) / size
    around = (sums[-1] - (sums[last] - sums[first])) / np.maximum(rest, 1)
    usual = np.minimum(inside, np.inf if level is None else level.mean)
    outside = np.where(rest > 0, around if level is None else np.maximum(around, usual), usual)
    result: FloatArray = outside + (1 + CONTRAST) * np.power(belief, TRUST) * size / (size + SHY) * (inside - outside)
    return result
