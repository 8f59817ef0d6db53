"""Shot boundaries in a run of small pictures: hard cuts, dissolves and fades, told from motion, flashes and exposure.

Pure array code over a stretch of frames; `shots` feeds it. Distances are between pictures reduced to a coarse grid of
mean colours and three histograms:

* a **hard cut** is a step: the geometric mean of grid, histogram and structure distance between two neighbours is
  large, stands out from the steps around it, and stays when both sides move apart (after a flash it does not);
* a **dissolve** is a blend: pictures between A and B lie on the straight line between them, A and B are unlike, and
  what precedes A and follows B changes little against it (a pan leaves the line, and goes on before and after);
* a **fade** is a dip of contrast to almost nothing between two pictures that have some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from momentseek.moments.arrays import runs_of_true

Floats = NDArray[np.float32]
Times = NDArray[np.float64]

CUT, STANDS_OUT = 0.17, 1.8
BLEND, UNLIKE = 0.68, 0.06
DIP, SOME_CONTRAST, FLAT, NOTHING = 0.15, 0.04, 0.02, 0.006
FLASH = 0.24  # seconds
HALF_WINDOWS = (0.25, 0.4, 0.6, 0.9)  # seconds
FADE = 1.2  # seconds
_APART = {frozenset({"cut"}): 0.25, frozenset({"cut", "fade"}): 0.5}  # seconds; 1 for other pairs
CONTEXT = 2 * HALF_WINDOWS[-1] + 0.2


@dataclass(frozen=True)
class Boundary:
    """Where, of which kind, and how surely in (0, 1]."""

    time: float
    kind: Literal["fade", "cut", "dissolve"]
    strength: float


@dataclass(frozen=True)
class Stretch:
    """Consecutive frames: times (n), grids (n, cells, 3) in [0, 1], histograms (n, bins) that sum to 1."""

    times: Times
    grids: Floats
    histograms: Floats

    @property
    def interval(self) -> float:
        """The usual seconds between two frames."""
        return float(np.median(np.diff(self.times))) if len(self.times) > 1 else 1.0

    def lag(self, seconds: float) -> int:
        """Frames in so many seconds, at least one."""
        return max(1, round(seconds / self.interval))


def boundaries(stretch: Stretch) -> list[Boundary]:
    """All boundaries of a stretch, unmerged, in no order."""
    if len(stretch.times) < 3:
        return []
    return hard_cuts(stretch) + fades(stretch) + dissolves(stretch)


def hard_cuts(stretch: Stretch) -> list[Boundary]:
    """Steps that stand out and stay."""
    n = len(stretch.times)
    after = np.arange(1, n)
    steps = distance(stretch, after - 1, after)
    reach = stretch.lag(FLASH)
    found = (steps >= CUT) & (steps >= STANDS_OUT * (_mean_around(steps, 4) + 0.03))
    found &= (after >= min(reach, n // 2)) & (after + reach <= n)  # a flash at either end has nothing to come back to
    after = after[found]
    staying = steps[found]
    for k in range(1, reach + 1):
        staying = np.minimum(staying, distance(stretch, np.maximum(after - 1 - k, 0), np.minimum(after + k, n - 1)))
    return [
        Boundary(float(stretch.times[i]), "cut", float(stays))
        for i, stays in zip(after, staying, strict=True)
        if stays >= CUT
    ]


def dissolves(stretch: Stretch) -> list[Boundary]:
    """Runs of frames that blend one picture into another."""
    n = len(stretch.times)
    flat = stretch.grids.reshape(n, -1)
    steps = np.sqrt(np.square(np.diff(flat, axis=0)).sum(1))
    places = np.arange(0, n, stretch.lag(0.08))
    quality = np.full(len(places), np.inf)
    for half in HALF_WINDOWS:
        k = stretch.lag(half)
        inside = (places >= k) & (places < n - k)
        if k < 3 or not inside.any():
            continue
        score = _blend(flat, steps, places[inside], k)
        alike = np.maximum(correlation(stretch.grids[places[inside] - k], stretch.grids[places[inside] + k]), 0)
        quality[inside] = np.minimum(quality[inside], np.where(alike > 0.6, np.inf, score + 0.3 * alike))
    found = []
    for first, last in np.transpose(runs_of_true(quality < BLEND)).tolist():
        weights = BLEND - quality[first:last]
        time = float(np.average(stretch.times[places[first:last]], weights=weights))
        found.append(Boundary(time, "dissolve", float(weights.max())))
    return found


def _blend(flat: Floats, steps: Floats, middle: NDArray[np.intp], k: int) -> Floats:
    """How far frames ``middle`` are from a blend of those ``k`` before and ``k`` after; infinite where none can be."""
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
    early, late = middle < 2 * k, middle + 2 * k >= len(flat)  # nothing to compare with there: as on the other side
    before, behind = (
        np.where(early, np.maximum(before, behind), before),
        np.where(late, np.maximum(before, behind), behind),
    )
    greatest = np.lib.stride_tricks.sliding_window_view(steps, 2 * k).max(1)[middle - k]
    score = worst + 0.4 * (before + behind)
    score[(greatest > 0.5 * length) | (length < UNLIKE * np.sqrt(flat.shape[1]))] = np.inf
    return np.asarray(score, np.float32)


def _norm(rows: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float32)


def fades(stretch: Stretch) -> list[Boundary]:
    """Dips of contrast between two pictures that have some."""
    n = len(stretch.times)
    contrast = stretch.grids.mean(2).std(1)
    reach = min(stretch.lag(FADE), n - 1)
    padded = np.pad(contrast, reach)
    greatest = np.lib.stride_tricks.sliding_window_view(padded, reach + 1).max(1)
    beside = np.minimum(greatest[:n], greatest[reach : reach + n])
    found = []
    dips = (contrast < DIP * beside) & (beside > SOME_CONTRAST) & (contrast < FLAT)
    for first, last in np.transpose(runs_of_true(dips)).tolist():
        a, b = max(0, first - 2), min(n - 1, last + 1)
        brief = stretch.times[last - 1] - stretch.times[first] < FLASH
        if brief and correlation(stretch.grids[a : a + 1], stretch.grids[b : b + 1])[0] > 0.8:
            continue  # a white or black flash: the same picture comes back
        found.append(Boundary(float(stretch.times[first] + stretch.times[last - 1]) / 2, "fade", 1.0))
    return found


def distance(stretch: Stretch, a: NDArray[np.intp], b: NDArray[np.intp]) -> Floats:
    """How unlike frames are, in [0, 1]: zero unless colours, their places and the structure all differ."""
    grid = np.minimum(1, np.abs(stretch.grids[a] - stretch.grids[b]).mean((1, 2)))
    histogram = 0.5 * np.abs(stretch.histograms[a] - stretch.histograms[b]).sum(1)
    structure = np.clip(1 - correlation(stretch.grids[a], stretch.grids[b]), 0, 1)
    return np.asarray(np.cbrt(grid * histogram * structure), np.float32)


def correlation(a: Floats, b: Floats) -> Floats:
    """Of the grids' brightness, frame by frame; 0 where either is flat, unless both are."""
    x, y = a.mean(2), b.mean(2)
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    one, other = np.sqrt(np.square(x).mean(1)), np.sqrt(np.square(y).mean(1))
    both = (x * y).mean(1) / np.maximum(one * other, 1e-9)
    flat_one, flat_other = one < NOTHING, other < NOTHING
    return np.asarray(np.where(flat_one & flat_other, 1, np.where(flat_one | flat_other, 0, both)), np.float32)


def merged(found: list[Boundary]) -> list[Boundary]:
    """Boundaries in order of time, without those too close to a surer one: 0.25 s between cuts, 1 s beside a dissolve.

    Fades count as surer than cuts, since a cut to black and one out of it are one; dissolves as the least sure.
    """
    kept: list[Boundary] = []
    for one in sorted(found, key=lambda b: (-"dissolve cut fade".index(b.kind), -b.strength, b.time)):
        if all(abs(one.time - other.time) >= _APART.get(frozenset((one.kind, other.kind)), 1.0) for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda b: b.time)


def _mean_around(values: Floats, reach: int) -> Floats:
    """The mean of the neighbours on both sides, without the value itself."""
    kernel = np.ones(2 * reach + 1, np.float32)
    kernel[reach] = 0
    total = np.convolve(values, kernel)[reach : reach + len(values)]
    count = np.convolve(np.ones_like(values), kernel)[reach : reach + len(values)]
    return np.asarray(total / np.maximum(count, 1), np.float32)
