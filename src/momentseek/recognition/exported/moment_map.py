"""The candidate moments of a map model, and their scores from two cosines.

MMN and CroCs resample a video to N clips and compute a pair of vectors for each candidate among them (2D-TAN's 136 of
16 clips). In a video much longer than those of training, a moment would vanish. So it is read in windows that overlap
by half or more, each resampled to N clips like a separate video. A candidate is kept from the window whose middle is
nearest, so that nothing is kept twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.ranking import suppress
from momentseek.recognition.encoders.protocol import Vectors


@dataclass(frozen=True)
class ClipWindow:
    """Clips ``first`` to ``last`` (exclusive) are read together, and ``begin`` to ``end`` (exclusive) are kept."""

    first: int
    last: int
    begin: int
    end: int


def windows(clips: int, size: int) -> list[ClipWindow]:
    """Return windows of ``size`` clips that overlap by half or more, and together keep every clip once.

    >>> windows(3, 4)
    [ClipWindow(first=0, last=3, begin=0, end=3)]
    >>> [(w.first, w.last, w.begin, w.end) for w in windows(7, 4)]
    [(0, 4, 0, 3), (2, 6, 3, 4), (3, 7, 4, 7)]
    """
    if clips <= size:
        return [ClipWindow(0, clips, 0, clips)]
    count = -(-(clips - size) // max(1, size // 2)) + 1
    firsts = [round(i * (clips - size) / (count - 1)) for i in range(count)]
    seams = [0, *((a + size + b) // 2 for a, b in pairwise(firsts)), clips]
    return [ClipWindow(f, f + size, a, b) for f, (a, b) in zip(firsts, pairwise(seams), strict=True)]


SEAM_TOLERANCE_CLIPS = 1e-9
"""A middle closer than this to the seam of two windows, in clips, belongs to the later one."""


@dataclass(frozen=True, eq=False)
class MapMoments:
    """Moments of one video in the order of their rows: from ``start`` to ``end``, in clips of the library."""

    start: FloatArray
    end: FloatArray
    last: FloatArray
    """Start of a moment's last resampled clip, in clips of the library."""
    window: NDArray[np.int64]
    """Number of the window that each moment was taken from."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class MomentScores:
    """A map model's scores of a video's candidate moments for a query."""

    start: FloatArray
    """Start of each of the M moments, in seconds."""
    end: FloatArray
    """End of each of the M moments, in seconds."""
    score: FloatArray
    """The model's score of each moment, by which moments of all videos are ranked."""
    sureness: FloatArray
    """Confidence that each moment answers the query; comparable across videos."""

    def part(self, start: float, end: float) -> MomentScores:
        """Return the moments between two times in seconds."""
        inside = (self.start >= start - 1e-6) & (self.end <= end + 1e-6)
        return MomentScores(self.start[inside], self.end[inside], self.score[inside], self.sureness[inside])

    def best(self, limit: int, iou: float = 0.5) -> IntArray:
        """Return the indices of the best ``limit`` moments that overlap no better one by more than ``iou``, best first.

        >>> starts, ends = np.array([0.0, 0.0, 6.0]), np.array([3.0, 4.5, 9.0])
        >>> MomentScores(starts, ends, np.array([-1, -0.5, -2]), np.zeros(3)).best(2).tolist()
        [1, 2]
        """
        order = np.lexsort((self.end, self.start, -self.score))
        stay = suppress(self.start[order], self.end[order], iou, limit)
        result: IntArray = order[stay].astype(np.int64)
        return result


@dataclass(frozen=True, eq=False)
class MomentMap:
    """The candidate moments of a map model.

    A candidate is ``start`` to ``start + length`` (exclusive) of the ``clips`` clips to which ``window`` clips of a
    video are resampled.

    >>> small = MomentMap(2, np.array([0, 1, 0]), np.array([1, 1, 2]), 4, 0.5, 10.0, 2)
    >>> of = small.of(6)  # windows 0-4 and 2-6
    >>> list(zip(of.start.tolist(), of.end.tolist()))
    [(0.0, 2.0), (0.0, 4.0), (2.0, 4.0), (4.0, 6.0), (2.0, 6.0)]
    """

    clips: int
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    window: int
    power: float
    sharpness: float
    longest: int
    """Maximum length of a predicted candidate, in clips."""
    alpha: float = 0.0
    """Weight of the video's best moment in the score of each moment."""
    end_time: str = "inclusive"
    whole: int = 0
    """Maximum length of a video that is read as one window, in clips, if more than ``window``."""

    def windows(self, clips: int) -> list[ClipWindow]:
        """Return the windows in which a video of ``clips`` clips is read."""
        return windows(clips, clips if clips <= self.whole else self.window)

    def count(self, clips: int) -> int:
        """Return the number of windows in which a video of ``clips`` clips is read.

        >>> small = MomentMap(2, np.array([0]), np.array([1]), 4, 0.5, 10.0, 2)
        >>> [small.count(n) == len(small.windows(n)) for n in (1, 4, 5, 6, 7, 100)]
        [True, True, True, True, True, True]
        """
        return 1 if clips <= max(self.whole, self.window) else -(-(clips - self.window) // max(1, self.window // 2)) + 1

    def of(self, clips: int) -> MapMoments:
        """Return the moments of a video of ``clips`` clips whose vectors are kept."""
        return _places(self, clips)

    def kept_candidates(self, window: ClipWindow) -> NDArray[np.intp]:
        """Return the indices of the candidates kept from a window: those whose middle lies in its kept part."""
        edges = self.edges(window)
        middle = (edges[self.start] + edges[self.start + self.length]) / 2 + SEAM_TOLERANCE_CLIPS
        predictable = (self.length <= self.longest) & (self.length >= (2 if self.end_time == "start" else 1))
        return np.flatnonzero((middle >= window.begin) & (middle < window.end) & predictable)

    def clip_weights(self, window: ClipWindow) -> NDArray[np.float32]:
        """Return (kept clips, candidates): the weights of the mean over the candidates that contain a clip."""
        at = (np.arange(window.begin, window.end) + 0.5 - window.first) * self.clips / (window.last - window.first)
        clip = np.minimum(at.astype(np.int64), self.clips - 1)[:, None]
        holds = (self.start <= clip) & (clip < self.start + self.length)
        return np.asarray(holds / holds.sum(axis=1, keepdims=True), np.float32)

    def scores(self, rows: Vectors, query: Vectors) -> FloatArray:
        """Return ``power log((cos_match + 1) / 2) + log sigmoid(sharpness cos_overlap)`` of moments' rows.

        >>> one = MomentMap(1, np.array([0]), np.array([1]), 1, 0.5, 10.0, 1)
        >>> half = np.float32(np.sqrt(0.5))
        >>> one.scores(np.array([[half, half]]), np.array([half, half])).round(4).tolist()
        [-0.0]
        """
        match, overlap = cosines(rows, query)
        return combine_cosines(match, overlap, self.power, self.sharpness)

    def edges(self, window: ClipWindow) -> FloatArray:
        """Return the starts of a window's resampled clips, and the end of the last, in clips of the library."""
        return window.first + np.arange(self.clips + 1) * (window.last - window.first) / self.clips


def cosines(rows: Vectors, query: Vectors) -> tuple[FloatArray, FloatArray]:
    """Return the cosines of moments and a query for matching and for overlap.

    They are those of the two halves of vectors, each half of length 1 / sqrt(2).
    """
    half = rows.shape[1] // 2
    match, overlap = rows[:, :half] @ query[:half], rows[:, half:] @ query[half:]
    return 2 * match.astype(np.float64), 2 * overlap.astype(np.float64)


def combine_cosines(match: FloatArray, overlap: FloatArray, power: float, sharpness: float) -> FloatArray:
    """Return the log score of moments from their two cosines."""
    base = np.maximum(0.5 * match + 0.5, 1e-6)
    result: FloatArray = power * np.log(base) - np.logaddexp(0.0, -sharpness * overlap)
    return result


@lru_cache(maxsize=32)
def _places(known: MomentMap, clips: int) -> MapMoments:
    columns: list[tuple[FloatArray, ...]] = []
    for number, window in enumerate(known.windows(clips)):
        kept, edges = known.kept_candidates(window), known.edges(window)
        first, after = known.start[kept], (known.start + known.length)[kept]
        beyond = after if known.end_time == "inclusive" else after - 1
        columns.append((edges[first], edges[beyond], edges[after - 1], np.full(len(kept), float(number))))
    start, end, last, owner = (np.concatenate(column) for column in zip(*columns, strict=True))
    return MapMoments(start, end, last, owner.astype(np.int64))
