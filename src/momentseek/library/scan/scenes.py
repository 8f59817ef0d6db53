"""A few vectors for a video: the means of its scenes, found by merging neighbouring clips.

A video's clips are alike inside a scene and unlike across a cut, so a mean per scene says nearly as much about the best
clip as the clips do, at a tenth of the size. Neighbouring scenes are merged in order of Ward's cost,
``n₁ n₂ / (n₁ + n₂) |μ₁ - μ₂|²``, the growth of the squared distances to the means (Ward 1963), while two things hold:
the merged scene stays tight (its clips' mean squared distance to their mean is at most ``MAX_SPREAD``), and its halves
are alike (``|μ₁ - μ₂|² <= MAX_DISTANCE``), without which one odd clip would vanish in a long scene. A smooth video ends
as one scene, a video of five unlike shots as five. Long videos are cut into stretches first, so that the work grows
with their length only; scenes that are too many for their stretch are merged on, cheapest first.

The mean is stored unnormalised: a loose scene then has a short vector and promises less.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.threads import run_together

CLIPS_PER_STRETCH = 32
"""Clips that are considered together."""
MAX_SCENES_PER_STRETCH = 8
"""Most scenes of a stretch."""
MAX_SPREAD = 0.25
"""Largest mean squared distance of clips to their scene's mean."""
MAX_DISTANCE = 0.6
"""Largest squared distance of the means of two scenes that are merged."""
LOOSE_COST = 1e30


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
    codes, scales = np.asarray(codes), np.asarray(scales)
    offsets = np.ascontiguousarray(offsets, np.int64)
    run_together(
        partial(_pool, codes, scales, offsets, places, means, counts, low, high)
        for low, high in pairwise(cuts.tolist())
    )
    starts = np.concatenate([[0], np.cumsum(counts)])
    keep = np.repeat(places[:-1] - starts[:-1], counts) + np.arange(starts[-1])
    return means[keep], starts


@nb.njit(nogil=True, cache=True)
def _pool(  # pragma: no cover  (compiled)
    codes: Any, scales: Any, offsets: Any, places: Any, means: Any, counts: Any, low: int, high: int
) -> None:
    dim = codes.shape[1]
    rows = np.empty((CLIPS_PER_STRETCH, dim), np.float32)
    sizes = np.empty(CLIPS_PER_STRETCH, np.float32)
    squares = np.empty(CLIPS_PER_STRETCH, np.float32)
    costs = np.empty(CLIPS_PER_STRETCH, np.float32)
    following = np.empty(CLIPS_PER_STRETCH + 1, np.int64)
    for video in range(low, high):
        written = 0
        begin = offsets[video]
        while begin < offsets[video + 1]:
            count = min(CLIPS_PER_STRETCH, offsets[video + 1] - begin)
            for i in range(count):
                scale = scales[begin + i]
                if not np.isfinite(scale):
                    scale = np.float32(0)
                square = np.float32(0)
                for j in range(dim):
                    value = scale * np.float32(codes[begin + i, j])
                    rows[i, j] = value
                    square += value * value
                sizes[i], squares[i], following[i] = 1, square, i + 1
            for i in range(count - 1):
                costs[i] = _cost(rows, sizes, squares, i, i + 1)
            left = count
            while left > 1:
                best, cheapest = 0, np.float32(np.inf)
                i = 0
                while following[i] < count:
                    if costs[i] < cheapest:
                        best, cheapest = i, costs[i]
                    i = following[i]
                if cheapest >= LOOSE_COST and left <= MAX_SCENES_PER_STRETCH:
                    break
                other = following[best]
                total = sizes[best] + sizes[other]
                for j in range(dim):
                    rows[best, j] = (sizes[best] * rows[best, j] + sizes[other] * rows[other, j]) / total
                squares[best] += squares[other]
                sizes[best] = total
                following[best] = following[other]
                left -= 1
                if following[best] < count:
                    costs[best] = _cost(rows, sizes, squares, best, following[best])
                if best > 0:
                    i = 0
                    while following[i] != best:
                        i = following[i]
                    costs[i] = _cost(rows, sizes, squares, i, best)
            i = 0
            while i < count:
                means[places[video] + written] = rows[i]
                written += 1
                i = following[i]
            begin += count
        counts[video] = written


@nb.njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _cost(rows: Any, sizes: Any, squares: Any, one: int, two: int) -> Any:  # pragma: no cover  (compiled)
    """Ward's cost of merging two scenes, raised beyond all others if the result is too loose."""
    distance = np.float32(0)
    total = sizes[one] + sizes[two]
    length = np.float32(0)
    for j in range(rows.shape[1]):
        apart = rows[one, j] - rows[two, j]
        distance += apart * apart
        mean = (sizes[one] * rows[one, j] + sizes[two] * rows[two, j]) / total
        length += mean * mean
    cost = sizes[one] * sizes[two] / total * distance
    if distance > MAX_DISTANCE or (squares[one] + squares[two]) / total - length > MAX_SPREAD:
        cost = (cost + np.float32(1)) * np.float32(LOOSE_COST)
    return cost
