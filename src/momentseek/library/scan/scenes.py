"""A few vectors for a video: the means of its scenes, found by merging neighbouring clips.

A video's clips are alike inside a scene and unlike across a cut, so a mean per scene says nearly as much about the best
clip as the clips do, at a tenth of the size. Neighbouring scenes are merged in order of Ward's cost,
``n₁ n₂ / (n₁ + n₂) |μ₁ - μ₂|²``, the growth of the squared distances to the means (Ward 1963), while two things hold:
the merged scene stays tight (its clips' mean squared distance to their mean is at most ``MAX_SPREAD``), and its halves
are alike (``|μ₁ - μ₂|² <= MAX_DISTANCE``), without which one odd clip would vanish in a long scene. A smooth video ends
as one scene, a video of five unlike shots as five. Long videos are cut into stretches first, so that the work grows
with their length only; scenes that are too many for their stretch are merged on, cheapest first.

The mean is stored unnormalised: a loose scene then has a short vector and promises less. The work is done in C
(``native/scenes.c``).
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.threads import run_together
from momentseek.native.library import address, call, kernels, writable

CLIPS_PER_STRETCH = 32
"""Clips that are considered together."""
MAX_SCENES_PER_STRETCH = 8
"""Most scenes of a stretch."""
MAX_SPREAD = 0.25
"""Largest mean squared distance of clips to their scene's mean."""
MAX_DISTANCE = 0.6
"""Largest squared distance of the means of two scenes that are merged."""


def pool_scenes(
    codes: NDArray[np.int8], scales: NDArray[np.float32], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Means of the scenes of each video, and offsets of each video's means.

    >>> codes = np.array([[127, 0], [127, 0], [0, 127]], np.int8)
    >>> means, offsets = pool_scenes(codes, np.full(3, 1 / 127, np.float32), np.array([0, 3, 3]))
    >>> means.tolist(), offsets.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0, 2, 2])
    """
    videos = len(offsets) - 1
    cuts = np.linspace(0, videos, 1 + max(1, min(8, videos // 64))).astype(np.int64)
    lengths = np.diff(offsets)
    room = lengths // CLIPS_PER_STRETCH * MAX_SCENES_PER_STRETCH + np.minimum(
        lengths % CLIPS_PER_STRETCH, MAX_SCENES_PER_STRETCH
    )
    places = np.concatenate([[0], np.cumsum(room)])
    means = np.empty((int(places[-1]), codes.shape[1]), np.float32)
    counts = np.zeros(videos, np.int64)
    rows, dim = codes.shape
    offsets = np.ascontiguousarray(offsets, np.int64)
    ready = (
        address(np.asarray(codes), np.int8, rows, dim), address(np.asarray(scales), np.float32, rows), dim,
        address(offsets, np.int64, videos + 1), videos, rows, address(places, np.int64, videos + 1),
        writable(means, np.float32, int(places[-1]), dim), writable(counts, np.int64, videos),
        CLIPS_PER_STRETCH, MAX_SCENES_PER_STRETCH, MAX_SPREAD, MAX_DISTANCE,
    )  # fmt: skip
    run_together(partial(call, kernels().pool_scenes, *ready, low, high) for low, high in pairwise(cuts.tolist()))
    starts = np.concatenate([[0], np.cumsum(counts)])
    keep = np.repeat(places[:-1] - starts[:-1], counts) + np.arange(starts[-1])
    return means[keep], starts
