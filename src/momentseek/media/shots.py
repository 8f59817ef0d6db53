"""Where one shot ends and the next begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from momentseek.media.boundaries import CONTEXT, Boundary, Stretch, boundaries, merged
from momentseek.media.container import FilePath
from momentseek.media.decode import frames
from momentseek.media.picture import Pixels

_COLUMNS, _ROWS = 16, 12
_LEVELS = 16
_LEVEL = (np.sqrt(np.arange(256) / 256) * _LEVELS).astype(np.uint8)
_STRETCH = 12.0  # seconds looked at together
_MOST_FRAMES = 2000


def shots(path: FilePath) -> list[float]:
    """The times at which a new shot begins, in seconds; none for a video of one shot.

    A cut is given by the first frame of the new shot, a dissolve or fade by its middle.
    """
    detector = ShotDetector()
    for _ in frames(path, rate=1 / 3600, spy=detector.push):
        pass
    return detector.boundaries()


class ShotDetector:
    """Takes small pictures in order of time (the ``spy`` of `frames`) and tells the shot boundaries among them.

    Memory stays small however long the video: only the last few seconds are kept, as grids and histograms.
    """

    def __init__(self) -> None:
        self._times: list[float] = []
        self._grids: list[NDArray[np.float32]] = []
        self._histograms: list[NDArray[np.float32]] = []
        self._found: list[Boundary] = []
        self._done = -np.inf

    def push(self, time: float, small: Pixels) -> None:
        """One more picture, (height, width, 3) RGB; 64 pixels wide is plenty."""
        grid = cells(small)
        if self._grids and grid.shape != self._grids[-1].shape:  # too small for a whole grid, and another size
            return
        self._times.append(time)
        self._grids.append(grid)
        self._histograms.append(shares(small))
        if time - self._times[0] > _STRETCH + 2 * CONTEXT or len(self._times) >= _MOST_FRAMES:
            self._settle()

    def boundaries(self) -> list[float]:
        """The boundaries among what was pushed so far."""
        rest = [b for b in self._evaluated() if b.time >= self._done]
        return [b.time for b in merged(self._found + rest)]

    def _settle(self) -> None:
        """Decide all but the newest frames, and keep only what the next ones need beside them."""
        until = self._times[-1] - CONTEXT
        self._found += [b for b in self._evaluated() if self._done <= b.time < until]
        self._done = until
        first = int(np.searchsorted(self._times, until - CONTEXT))
        first = max(first, len(self._times) - _MOST_FRAMES // 2)
        del self._times[:first], self._grids[:first], self._histograms[:first]

    def _evaluated(self) -> list[Boundary]:
        if not self._times:
            return []
        return boundaries(Stretch(np.array(self._times), np.array(self._grids), np.array(self._histograms)))


def cells(small: Pixels) -> NDArray[np.float32]:
    """Mean colours of a grid of 16 × 12, in [0, 1]: what is left when noise and small motion are averaged out."""
    height, width, _ = small.shape
    rows = np.linspace(0, height, min(_ROWS, height) + 1).astype(int)
    columns = np.linspace(0, width, min(_COLUMNS, width) + 1).astype(int)
    sums = np.add.reduceat(np.add.reduceat(small, rows[:-1], 0, np.float32), columns[:-1], 1)
    area = np.outer(np.diff(rows), np.diff(columns))[..., None] * np.float32(255)
    return np.asarray(sums / area, np.float32).reshape(-1, 3)


def shares(small: Pixels) -> NDArray[np.float32]:
    """Shares of the pixels in 16 levels of each colour, finer where it is dark; they sum to 1."""
    levels = _LEVEL[small] + (np.arange(3, dtype=np.uint8) * _LEVELS)
    counts = np.bincount(levels.ravel(), minlength=3 * _LEVELS)
    return (counts / levels.size).astype(np.float32)
