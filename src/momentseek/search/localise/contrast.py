"""`contrast`: every window, scored by how far its mean stands above the mean of the rest (TFVTG's static score).

    contrast(a, b) = mean(s[a:b]) − mean(s[:a] ∪ s[b:])

over all windows of all lengths up to a maximum, computed by cumulative sums. The best ones are kept, then each start
moves to the beginning of the climb (TFVTG's dynamic start). Zheng et al. 2024, "Training-free video temporal
grounding".
"""

from __future__ import annotations

import numpy as np

from momentseek.core.moments.arrays import FloatArray, Positions
from momentseek.search.localise.localiser import LOCALISERS, Curve, Proposals, suppress

MAX_VIDEO_SHARE = 0.5
"""Longest window as a share of the video …"""
MAX_SECONDS = 300.0
"""… and in seconds, so that the work on a long video is bounded."""
MIN_SECONDS = 6.0
"""Shortest window; the published windows are multiples of a stride, and single clips would always win on noise."""
MAX_WINDOWS, MAX_PROPOSALS = 500, 10
"""Number of windows before suppression of near-duplicates, and after it."""
MIN_CLIMB = 0.1
"""Slope per clip, as a share of the curve's range, above which a curve climbs."""


@LOCALISERS.register("contrast")
def contrast(
    curve: Curve,
    share: float = MAX_VIDEO_SHARE,
    longest_seconds: float = MAX_SECONDS,
    shortest_seconds: float = MIN_SECONDS,
) -> Proposals:
    """Propose windows of ``shortest_seconds`` to ``share`` of the video and ``longest_seconds``, most contrast first.

    >>> spans = contrast(Curve.regular([0.1, 0.1, 0.1, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1], seconds=2))
    >>> float(spans.start[0]), float(spans.end[0])
    (6.0, 12.0)
    """
    scores = curve.scores.astype(np.float64)
    clip = (curve.duration - float(curve.edges[0])) / len(curve)
    shortest = min(len(curve), max(1, round(shortest_seconds / clip)))
    longest = max(shortest, min(round(share * len(curve)), int(longest_seconds / clip)))
    first, last, value = all_contrasts(scores, longest, shortest)
    best = np.argsort(-value, kind="stable")[:MAX_WINDOWS]
    first, last, value = first[best], last[best], value[best]
    places = suppress(Proposals.of_clips(curve, first, last, value), iou=0.3, limit=MAX_PROPOSALS)
    first, last = (np.searchsorted(curve.edges, side) for side in (places.start, places.end))
    first = np.asarray([climb_start(scores, int(a)) for a in first], dtype=np.intp)
    return suppress(Proposals.of_clips(curve, first, last, places.score))


def all_contrasts(scores: FloatArray, longest: int, shortest: int = 1) -> tuple[Positions, Positions, FloatArray]:
    """First clip, last clip (exclusive) and contrast of every window of ``shortest`` to ``longest`` clips.

    >>> first, last, value = all_contrasts(np.array([0.0, 1.0, 0.0]), 2)
    >>> [(int(a), int(b), float(v)) for a, b, v in zip(first, last, value)]
    [(0, 1, -0.5), (1, 2, 1.0), (2, 3, -0.5), (0, 2, 0.5), (1, 3, 0.5)]
    """
    count = len(scores)
    lengths = np.arange(min(shortest, count), min(longest, count) + 1)
    first = np.concatenate([np.arange(count - n + 1) for n in lengths])
    last = first + np.repeat(lengths, count - lengths + 1)
    return first, last, window_contrast(scores, first, last)


def window_contrast(scores: FloatArray, first: Positions, last: Positions) -> FloatArray:
    """Mean inside minus mean outside, for each given window; 0 for a window that is the whole curve."""
    sums = np.concatenate(([0.0], np.cumsum(scores)))
    inside, size = sums[last] - sums[first], last - first
    rest = len(scores) - size
    value = inside / size - (sums[-1] - inside) / np.maximum(rest, 1)
    result: FloatArray = np.where(rest > 0, value, 0.0)
    return result


def climb_start(values: FloatArray, start: int, least_climb: float = MIN_CLIMB) -> int:
    """The first clip of the climb that leads to ``start`` (TFVTG's dynamic start, on clips instead of frames).

    People see the beginning where the curve starts to climb, not where it is high. Let f be the difference of a clip
    from the one before. The clip before the start is included while its f, the weighted mean of its last two f (the
    later one twice), or the mean of its last three is more than ``least_climb`` of the curve's range. A sharp edge
    stays where it is, because the clip before it is low and does not climb yet.

    >>> climb_start(np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.6, 0.9, 0.9, 0.9]), 6)
    4
    >>> climb_start(np.array([0.0, 0.0, 0.0, 0.9, 0.9, 0.9]), 3)
    3
    """
    least = 3 * least_climb * float(np.ptp(values))
    f = np.diff(values, prepend=values[0])
    i = start
    while i > 0:
        f0, f1, f2 = (float(f[i - n]) if i >= n else 0.0 for n in (1, 2, 3))
        if f0 <= 0 or max(3 * f0, 2 * f0 + f1, f0 + f1 + f2) <= least:
            break
        i -= 1
    return i
