"""Detect shot boundaries in a sequence of small pictures: hard cuts, dissolves and fades.

Motion, flashes and changes of exposure are not boundaries. ``ShotDetector`` takes the pictures one by one; the rest is
array code over a run of frames. Distances are between pictures reduced to a coarse grid of mean colours and three
histograms:

* a **hard cut** is a step: the geometric mean of grid, histogram and structure distance between two neighbours is
  large, stands out from the steps around it, and stays when both sides move apart (after a flash it does not);
* a **dissolve** is a blend: pictures between A and B lie on the straight line between them, A and B differ, and the
  pictures before A and after B change little in comparison (a pan leaves the line, and continues before and after);
* a **fade** is a drop of contrast to almost zero between two pictures with contrast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from momentseek.core.moments.arrays import runs_of_true
from momentseek.media.pixels import Pixels

Floats = NDArray[np.float32]
Times = NDArray[np.float64]

MIN_CUT_DISTANCE, MIN_CUT_RATIO = 0.17, 1.8
MAX_BLEND_ERROR, MIN_BLEND_CHANGE = 0.68, 0.06
MAX_DIP_SHARE, MIN_CONTRAST, MAX_FADE_CONTRAST, FLAT_CONTRAST = 0.15, 0.04, 0.02, 0.006
FLASH_SECONDS = 0.24
HALF_WINDOW_SECONDS = (0.25, 0.4, 0.6, 0.9)
FADE_SECONDS = 1.2
_MIN_GAP_SECONDS = {frozenset({"cut"}): 0.25, frozenset({"cut", "fade"}): 0.5}  # 1 for other pairs
SHOT_CONTEXT_SECONDS = 2 * HALF_WINDOW_SECONDS[-1] + 0.2
_GRID_COLUMNS, _GRID_ROWS = 16, 12
_LEVELS = 16
_LEVEL = (np.sqrt(np.arange(256) / 256) * _LEVELS).astype(np.uint8)
_STRETCH_SECONDS = 12.0  # processed together
_MAX_FRAMES = 2000


class ShotDetector:
    """Finds shot boundaries among small pictures that are pushed in order of time (``on_picture`` of `frames`).

    Memory stays small for videos of any length: only the last few seconds are kept, as grids and histograms.
    """

    def __init__(self) -> None:
        self._times: list[float] = []
        self._grids: list[NDArray[np.float32]] = []
        self._histograms: list[NDArray[np.float32]] = []
        self._found: list[Boundary] = []
        self._done = -np.inf

    def push(self, time: float, small: Pixels) -> None:
        """Add the next picture, (height, width, 3) RGB; 64 pixels of width are enough."""
        grid = cells(small)
        if self._grids and grid.shape != self._grids[-1].shape:  # too small for a full grid, and of another size
            return
        self._times.append(time)
        self._grids.append(grid)
        self._histograms.append(shares(small))
        if time - self._times[0] > _STRETCH_SECONDS + 2 * SHOT_CONTEXT_SECONDS or len(self._times) >= _MAX_FRAMES:
            self._settle()

    def boundaries(self) -> list[float]:
        """Return the times of the shot boundaries so far, in seconds."""
        rest = [b for b in self._evaluate() if b.time >= self._done]
        return [b.time for b in merge_boundaries(self._found + rest)]

    def _settle(self) -> None:
        """Decide on all but the newest frames, and keep only what later frames are compared with."""
        until = self._times[-1] - SHOT_CONTEXT_SECONDS
        self._found += [b for b in self._evaluate() if self._done <= b.time < until]
        self._done = until
        first = int(np.searchsorted(self._times, until - SHOT_CONTEXT_SECONDS))
        first = max(first, len(self._times) - _MAX_FRAMES // 2)
        del self._times[:first], self._grids[:first], self._histograms[:first]

    def _evaluate(self) -> list[Boundary]:
        """Return all boundaries of the kept frames, unmerged and unordered."""
        if len(self._times) < 3:
            return []
        stretch = Stretch(np.array(self._times), np.array(self._grids), np.array(self._histograms))
        return hard_cuts(stretch) + fades(stretch) + dissolves(stretch)


def cells(small: Pixels) -> NDArray[np.float32]:
    """Return the mean colours of a picture on a 16 × 12 grid, in [0, 1], which averages out noise and small motion."""
    rows, columns, area = _grid(*small.shape[:2])
    sums = np.add.reduceat(np.add.reduceat(small, rows, 0, np.float32), columns, 1)
    return np.asarray(sums / area, np.float32).reshape(-1, 3)


@lru_cache(maxsize=8)
def _grid(height: int, width: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """Return the first rows and columns of a picture's cells, and the divisors of their sums."""
    rows = np.linspace(0, height, min(_GRID_ROWS, height) + 1).astype(int)
    columns = np.linspace(0, width, min(_GRID_COLUMNS, width) + 1).astype(int)
    return rows[:-1], columns[:-1], np.outer(np.diff(rows), np.diff(columns))[..., None] * np.float32(255)


def shares(small: Pixels) -> NDArray[np.float32]:
    """Return the shares of a picture's pixels in 16 levels of each colour, finer for dark ones; they sum to 1."""
    levels = _LEVEL[small] + (np.arange(3, dtype=np.uint8) * _LEVELS)
    counts = np.bincount(levels.ravel(), minlength=3 * _LEVELS)
    return (counts / levels.size).astype(np.float32)


@dataclass(frozen=True)
class Boundary:
    """A shot boundary: its time in seconds, its kind, and its confidence in (0, 1]."""

    time: float
    kind: Literal["fade", "cut", "dissolve"]
    strength: float


@dataclass(frozen=True)
class Stretch:
    """Consecutive frames: times (n), grids (n, cells, 3) in [0, 1], histograms (n, bins) that sum to 1."""

    times: Times
    grids: Floats
    histograms: Floats

    def lag(self, seconds: float) -> int:
        """Return the number of frames in a number of seconds, at least one."""
        return max(1, round(seconds / float(np.median(np.diff(self.times)))))


def hard_cuts(stretch: Stretch) -> list[Boundary]:
    """Return the hard cuts of a run of frames: steps that stand out and stay."""
    n = len(stretch.times)
    after = np.arange(1, n)
    steps = distance(stretch, after - 1, after)
    width = stretch.lag(FLASH_SECONDS)
    found = (steps >= MIN_CUT_DISTANCE) & (steps >= MIN_CUT_RATIO * (_mean_around(steps, 4) + 0.03))
    found &= (after >= min(width, n // 2)) & (after + width <= n)  # a flash at either end cannot be told from a cut
    after = after[found]
    staying = steps[found]
    for k in range(1, width + 1):
        staying = np.minimum(staying, distance(stretch, np.maximum(after - 1 - k, 0), np.minimum(after + k, n - 1)))
    return [
        Boundary(float(stretch.times[i]), "cut", float(stays))
        for i, stays in zip(after, staying, strict=True)
        if stays >= MIN_CUT_DISTANCE
    ]


def dissolves(stretch: Stretch) -> list[Boundary]:
    """Return the dissolves of a run of frames: frames that blend one picture into another."""
    n = len(stretch.times)
    flat = stretch.grids.reshape(n, -1)
    steps = np.sqrt(np.square(np.diff(flat, axis=0)).sum(1))
    places = np.arange(0, n, stretch.lag(0.08))
    quality = np.full(len(places), np.inf)
    for half in HALF_WINDOW_SECONDS:
        k = stretch.lag(half)
        inside = (places >= k) & (places < n - k)
        if k < 3 or not inside.any():
            continue
        score = _blend(flat, steps, places[inside], k)
        alike = np.maximum(correlation(stretch.grids[places[inside] - k], stretch.grids[places[inside] + k]), 0)
        quality[inside] = np.minimum(quality[inside], np.where(alike > 0.6, np.inf, score + 0.3 * alike))
    found = []
    for first, last in np.transpose(runs_of_true(quality < MAX_BLEND_ERROR)).tolist():
        weights = MAX_BLEND_ERROR - quality[first:last]
        time = float(np.average(stretch.times[places[first:last]], weights=weights))
        found.append(Boundary(time, "dissolve", float(weights.max())))
    return found


def _blend(flat: Floats, steps: Floats, middle: NDArray[np.intp], k: int) -> Floats:
    """Return the distance of frames ``middle`` from a blend of those ``k`` before and after; infinite if impossible."""
    a, b = flat[middle - k], flat[middle + k]
    across = b - a
    length = _norm(across) + 1e-6
    worst = np.zeros(len(middle), np.float32)
    for shift in (-(k // 2), 0, k // 2):
        offset = flat[middle + shift] - a
        along = (offset * across).sum(1) / length**2
        worst = np.maximum(worst, _norm(offset - along[:, None] * across) / length)
        if shift == 0:
            worst[(along < 0.15) | (along > 0.85)] = np.inf
    before = _norm(a - flat[np.maximum(middle - 2 * k, 0)]) / length
    behind = _norm(b - flat[np.minimum(middle + 2 * k, len(flat) - 1)]) / length
    early, late = middle < 2 * k, middle + 2 * k >= len(flat)  # no frames to compare with there: use the other side
    larger = np.maximum(before, behind)
    before, behind = np.where(early, larger, before), np.where(late, larger, behind)
    greatest = np.lib.stride_tricks.sliding_window_view(steps, 2 * k).max(1)[middle - k]
    score = worst + 0.4 * (before + behind)
    score[(greatest > 0.5 * length) | (length < MIN_BLEND_CHANGE * np.sqrt(flat.shape[1]))] = np.inf
    return np.asarray(score, np.float32)


def _norm(rows: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float32)


def fades(stretch: Stretch) -> list[Boundary]:
    """Return the fades of a run of frames: drops of contrast between two pictures with contrast."""
    n = len(stretch.times)
    contrast = stretch.grids.mean(2).std(1)
    width = min(stretch.lag(FADE_SECONDS), n - 1)
    padded = np.pad(contrast, width)
    greatest = np.lib.stride_tricks.sliding_window_view(padded, width + 1).max(1)
    around = np.minimum(greatest[:n], greatest[width : width + n])
    found = []
    dips = (contrast < MAX_DIP_SHARE * around) & (around > MIN_CONTRAST) & (contrast < MAX_FADE_CONTRAST)
    for first, last in np.transpose(runs_of_true(dips)).tolist():
        a, b = max(0, first - 2), min(n - 1, last + 1)
        brief = stretch.times[last - 1] - stretch.times[first] < FLASH_SECONDS
        if brief and correlation(stretch.grids[a : a + 1], stretch.grids[b : b + 1])[0] > 0.8:
            continue  # a white or black flash: the same picture comes back
        found.append(Boundary(float(stretch.times[first] + stretch.times[last - 1]) / 2, "fade", 1.0))
    return found


def distance(stretch: Stretch, a: NDArray[np.intp], b: NDArray[np.intp]) -> Floats:
    """Return the distance of frames in [0, 1]; zero unless colours, their positions and the structure all differ."""
    grid = np.minimum(1, np.abs(stretch.grids[a] - stretch.grids[b]).mean((1, 2)))
    histogram = 0.5 * np.abs(stretch.histograms[a] - stretch.histograms[b]).sum(1)
    structure = np.clip(1 - correlation(stretch.grids[a], stretch.grids[b]), 0, 1)
    return np.asarray(np.cbrt(grid * histogram * structure), np.float32)


def correlation(a: Floats, b: Floats) -> Floats:
    """Return the correlation of the grids' brightness per frame; 0 if only one of the two is flat."""
    x, y = a.mean(2), b.mean(2)
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    one, other = np.sqrt(np.square(x).mean(1)), np.sqrt(np.square(y).mean(1))
    both = (x * y).mean(1) / np.maximum(one * other, 1e-9)
    flat_one, flat_other = one < FLAT_CONTRAST, other < FLAT_CONTRAST
    return np.asarray(np.where(flat_one & flat_other, 1, np.where(flat_one | flat_other, 0, both)), np.float32)


def merge_boundaries(found: list[Boundary]) -> list[Boundary]:
    """Return the boundaries in order of time, without those that are too close to a better one.

    A fade is better than a cut, and a cut better than a dissolve; of two of the same kind, the stronger is better. Two
    cuts must be at least 0.25 s apart, a cut and a fade 0.5 s, and all other pairs 1 s.

    Fades are better than cuts because of short black pictures between two shots: the cuts to and from black are found,
    and a fade between them, and only the fade is kept.
    """
    kept: list[Boundary] = []
    for one in sorted(found, key=lambda b: (-"dissolve cut fade".index(b.kind), -b.strength, b.time)):
        if all(
            abs(one.time - other.time) >= _MIN_GAP_SECONDS.get(frozenset((one.kind, other.kind)), 1.0) for other in kept
        ):
            kept.append(one)
    return sorted(kept, key=lambda b: b.time)


def _mean_around(values: Floats, width: int) -> Floats:
    """Return the mean of the neighbours on both sides, without the value itself."""
    kernel = np.ones(2 * width + 1, np.float32)
    kernel[width] = 0
    total = np.convolve(values, kernel)[width : width + len(values)]
    count = np.convolve(np.ones_like(values), kernel)[width : width + len(values)]
    return np.asarray(total / np.maximum(count, 1), np.float32)
