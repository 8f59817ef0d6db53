"""Slate's scores of spans from three curves, evaluated in numpy (docs/ranker.md).

A query is one row: a vector for the inside of a moment, one that rises at its start, one that falls at its end (each
with as many columns as a clip), and a score for each length. A span of clips s..e scores

    what · mean(x_s .. x_e) + start · (x_s - x_{s-1}) + end · (x_e - x_{e+1}) + length[e - s + 1]

with 0 for clips before and after the video. The same score ranks the moments of all videos.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from momentseek.core.moments.arrays import FloatArray
from momentseek.core.ranking import Scores
from momentseek.recognition.encoders.protocol import Vectors


@dataclass(frozen=True, eq=False)
class SpanQuery:
    """A query for spans: three vectors and a score for each length."""

    vectors: Vectors
    """(3, columns): what, start and end."""
    lengths: Vectors
    """Score of each length, starting from ``shortest`` clips."""
    shortest: int

    @property
    def what(self) -> Vectors:
        """The vector for the inside of a moment, of length 1."""
        return np.asarray(self.vectors[0] / max(self.reach[0], 1e-12), np.float32)

    @cached_property
    def reach(self) -> FloatArray:
        """Lengths of the three vectors, which bound their curves, since clips have length 1."""
        return np.asarray(np.linalg.norm(self.vectors.astype(np.float64), axis=1))

    def curves(self, rows: Vectors) -> FloatArray:
        """Return (3, clips): the products of clips with what, start and end."""
        return np.asarray(self.vectors.astype(np.float64) @ rows.astype(np.float64).T)

    def best(self, rows: Vectors, offsets: NDArray[np.int64]) -> Vectors:
        """Return the best span's score for each video (rows are concatenated); minus infinity if it has no span."""
        curves = self.curves(rows)
        parts = (slice(a, b) for a, b in pairwise(offsets.tolist()))
        longest = self.shortest + len(self.lengths) - 1
        found = (SpanCurves.of(curves[:, part], self).grid(self.shortest, longest) for part in parts)
        return np.array([grid.max(initial=-np.inf) for grid in found], np.float32)


@dataclass(frozen=True, eq=False)
class SpanCurves:
    """The three curves of a query over the clips of a video."""

    inside: FloatArray
    """(T,) product with the vector for the inside."""
    rise: FloatArray
    """(T,) increase of the start curve at this clip."""
    fall: FloatArray
    """(T,) decrease of the end curve after this clip."""
    lengths: Vectors
    shortest: int
    less: FloatArray
    """(T,) penalty of each clip for showing what the query wants to avoid."""

    @classmethod
    def of(cls, curves: FloatArray, query: SpanQuery, less: FloatArray | None = None) -> SpanCurves:
        """Convert the curves (3, T) of a whole video to increases and decreases.

        >>> query = SpanQuery(np.eye(3, dtype=np.float32), np.zeros(2, np.float32), 1)
        >>> found = SpanCurves.of(np.array([[1.0, 3.0], [0.0, 2.0], [1.0, 0.5]]), query)
        >>> found.rise.tolist(), found.fall.tolist(), found.grid(1, 2).tolist()
        ([0.0, 2.0], [0.5, 0.5], [[1.5, 2.5], [5.5, -inf]])
        """
        inside, start, end = curves
        rise, fall = np.diff(start, prepend=0.0), -np.diff(end, append=0.0)
        return cls(inside, rise, fall, query.lengths, query.shortest, np.zeros(len(inside)) if less is None else less)

    def part(self, first: int, last: int) -> SpanCurves:
        """Return the values of clips ``first`` to ``last`` (exclusive); clips around them still count at the edges."""
        at = slice(first, last)
        return replace(self, inside=self.inside[at], rise=self.rise[at], fall=self.fall[at], less=self.less[at])

    def grid(self, shortest: int, longest: int) -> Scores:
        """Return (T, lengths): the scores of spans by first clip and length; minus infinity if they do not fit."""
        clips = len(self.inside)
        first, sizes = np.arange(clips)[:, None], np.arange(shortest, longest + 1)
        beyond = first + sizes
        fits = beyond <= clips
        beyond = np.where(fits, beyond, first + 1)
        sums = np.concatenate(([0.0], np.cumsum(self.inside)))
        scores = (sums[beyond] - sums[first]) / (beyond - first)
        scores += self.rise[:, None] + self.fall[beyond - 1] + self.lengths[np.maximum(sizes - self.shortest, 0)]
        return np.where(fits, scores, -np.inf)


@dataclass(frozen=True)
class SpanHead:
    """The settings of a model that scores spans by three curves."""

    columns: int
    """Number of columns of a clip."""
    shortest: int
    longest: int
    scales: tuple[float, float, float]
    """Learned lengths of the vectors for what, start and end."""
    halo: int
    """Number of clips on each side that influence a clip's vector."""
    window: int = 100
    """Number of clips that count as one video in estimating the usual scores."""
    end_time: str = "inclusive"

    @property
    def row(self) -> int:
        """Number of columns of a query."""
        return 3 * self.columns + self.longest - self.shortest + 1

    def query(self, row: Vectors) -> SpanQuery:
        """Return the query for a row of the model's output."""
        cut = 3 * self.columns
        return SpanQuery(row[:cut].reshape(3, -1), row[cut:], self.shortest)
