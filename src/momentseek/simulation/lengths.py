"""How long videos and moments are, and where moments lie: TVR's own distributions.

Tables of quantiles, taken from TVR's public annotations (21,793 durations; 10,895 moments of the validation split),
and drawn from by inversion, on a logarithmic scale for lengths.
"""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray, IntArray

KINDS = ("v", "t", "vt")
"""What a caption rests on: video, text (subtitles), or both."""
KIND_SHARES = (0.743, 0.0885, 0.1685)
MAX_MOMENTS_PER_VIDEO = 5
SHORTEST_MOMENT_SECONDS = 0.26

QUANTILES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
VIDEO_SECONDS = (2.02, 43.02, 56.02, 58.03, 60.34, 76.55, 90.48, 93.03, 97.03, 130.03, 272.02)
MOMENT_SECONDS = {
    "v": (0.29, 0.91, 1.48, 1.84, 2.81, 4.52, 7.94, 16.51, 29.29, 67.21, 120.57),
    "t": (0.88, 1.87, 2.75, 3.51, 5.19, 9.05, 18.98, 30.39, 38.68, 47.89, 123.02),
    "vt": (0.56, 1.53, 2.33, 2.85, 4.09, 6.71, 12.26, 23.5, 35.18, 66.77, 91.7),
}
START_QUANTILES = (0.0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
START_SHARES = (0.0, 0.0, 0.005, 0.046, 0.126, 0.23, 0.354, 0.497, 0.638, 0.796, 0.959, 1.0, 1.0)
"""Starts as shares of the last start that is possible."""


def draw_video_seconds(count: int, rng: np.random.Generator) -> FloatArray:
    """Draw durations of videos, in seconds.

    >>> seconds = draw_video_seconds(4000, np.random.default_rng(0))
    >>> float(np.median(seconds).round()), bool(seconds.min() >= 2.02 and seconds.max() <= 272.02)
    (76.0, True)
    """
    return _quantiles(rng.random(count), VIDEO_SECONDS).round(2)


def moments_per_video(seconds: FloatArray) -> IntArray:
    """Number of moments in each video: five, and fewer where it is only seconds long."""
    return np.clip(seconds / 2, 1, MAX_MOMENTS_PER_VIDEO).astype(np.int64)


def draw_kinds(count: int, rng: np.random.Generator) -> IntArray:
    """Draw a kind per moment (its place in ``KINDS``), in TVR's proportions."""
    return np.searchsorted(np.cumsum(KIND_SHARES)[:-1], rng.random(count), side="right").astype(np.int64)


def draw_moment_times(kind: IntArray, seconds: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw start and end (seconds, to the hundredth) of moments of some kinds in videos of some lengths."""
    drawn = rng.random(len(kind))
    length = np.choose(kind, [_quantiles(drawn, MOMENT_SECONDS[k]) for k in KINDS])
    length = np.minimum(length, seconds)
    share = np.interp(rng.random(len(kind)), START_QUANTILES, START_SHARES)
    start = np.floor(share * (seconds - length) * 100) / 100
    end = np.minimum(np.maximum(start + length, start + SHORTEST_MOMENT_SECONDS), seconds).round(2)
    return start, end


def _quantiles(levels: FloatArray, table: tuple[float, ...]) -> FloatArray:
    return np.exp(np.interp(levels, QUANTILES, np.log(table)))
