"""`contrast`: every window, scored by how far its mean stands above the mean of the rest (TFVTG's static score).

    contrast(a, b) = mean(s[a:b]) − mean(s[:a] ∪ s[b:])

over all windows of all lengths up to a maximum, by cumulative sums; the best ones kept, then each start moved to the
beginning of the climb (TFVTG's dynamic start). Zheng et al. 2024, "Training-free video temporal grounding".
"""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.search.localise.curve import Curve
from momentseek.search.localise.registry import register
from momentseek.search.localise.rise import walked_back
from momentseek.search.localise.runs import Index
from momentseek.search.localise.spans import Spans, suppress

SHARE = 0.5
"""Longest window as a share of the video …"""
SECONDS = 300.0
"""… and in seconds, so that the work on a long video is bounded."""
SHORTEST = 6.0
"""In seconds; the published windows are multiples of a stride, and single clips would always win on noise."""
CANDIDATES, KEPT = 500, 10


def contrasts(scores: FloatArray, longest: int, shortest: int = 1) -> tuple[Index, Index, FloatArray]:
    """First clip, last clip (exclusive) and contrast of every window of ``shortest`` to ``longest`` clips.

    >>> first, last, value = contrasts(np.array([0.0, 1.0, 0.0]), 2)
    >>> [(int(a), int(b), float(v)) for a, b, v in zip(first, last, value)]
    [(0, 1, -0.5), (1, 2, 1.0), (2, 3, -0.5), (0, 2, 0.5), (1, 3, 0.5)]
    """
    count = len(scores)
    lengths = np.arange(min(shortest, count), min(longest, count) + 1)
    first = np.concatenate([np.arange(count - n + 1) for n in lengths])
    last = first + np.repeat(lengths, count - lengths + 1)
    return first, last, contrast_of(scores, first, last)


def contrast_of(scores: FloatArray, first: Index, last: Index) -> FloatArray:
    """Inside mean − outside mean of given windows; a window that is the whole curve has nothing outside: 0."""
    sums = np.concatenate(([0.0], np.cumsum(scores)))
    inside, size = sums[last] - sums[first], last - first
    rest = len(scores) - size
    value = inside / size - (sums[-1] - inside) / np.maximum(rest, 1)
    result: FloatArray = np.where(rest > 0, value, 0.0)
    return result


@register("contrast")
def contrast(curve: Curve, share: float = SHARE, seconds: float = SECONDS, shortest: float = SHORTEST) -> Spans:
    """Windows from ``shortest`` seconds to ``share`` of the video and ``seconds``, most contrast first.

    >>> spans = contrast(Curve.regular([0.1, 0.1, 0.1, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1], seconds=2))
    >>> float(spans.start[0]), float(spans.end[0])
    (6.0, 12.0)
    """
    scores = curve.scores.astype(np.float64)
    clip = (curve.duration - float(curve.edges[0])) / len(curve)
    least = min(len(curve), max(1, round(shortest / clip)))
    first, last, value = contrasts(scores, max(least, min(round(share * len(curve)), int(seconds / clip))), least)
    best = np.argsort(-value, kind="stable")[:CANDIDATES]
    first, last, value = first[best], last[best], value[best]
    places = suppress(Spans.of_clips(curve, first, last, value), iou=0.3, limit=KEPT)
    first, last = (np.searchsorted(curve.edges, side) for side in (places.start, places.end))
    first = np.asarray([walked_back(scores, int(a)) for a in first], dtype=np.intp)
    return suppress(Spans.of_clips(curve, first, last, places.score))
