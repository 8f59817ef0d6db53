"""Curve: how well each clip of one video matches a query; all that a localiser may look at."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from momentseek.errors import MomentseekError
from momentseek.moments.arrays import FloatArray
from momentseek.trained.boundary_head import Boundaries

Floats32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Background:
    """How this query scores on the clips of the whole library: what "nothing to see here" looks like.

    >>> Background.of([0.1, 0.2, 0.3]).mean.round(3)
    np.float64(0.2)
    """

    mean: float
    sd: float
    quantiles: FloatArray
    """Of the scores, at 0, 1/n, …, 1 (n + 1 values, evenly spaced in probability)."""

    @classmethod
    def of(cls, scores: ArrayLike, bins: int = 100) -> Background:
        """From a sample of scores."""
        s = np.asarray(scores, dtype=np.float64)
        return cls(s.mean(), s.std(), np.quantile(s, np.linspace(0, 1, bins + 1)))

    def quantile(self, share: float) -> float:
        """The score that a ``share`` of the library's clips stays below.

        >>> Background.of(range(101)).quantile(0.25)
        25.0
        """
        return float(np.interp(share, np.linspace(0, 1, len(self.quantiles)), self.quantiles))


@dataclass(frozen=True, eq=False)
class Moments:
    """What a trained model says of each of a video's candidate moments."""

    start: FloatArray
    """(M,) seconds."""
    end: FloatArray
    score: FloatArray
    sureness: FloatArray
    """(M,) what it is judged by whether a moment answers at all; comparable across videos."""

    def part(self, start: float, end: float) -> Moments:
        """Those that lie in a stretch of time."""
        inside = (self.start >= start - 1e-6) & (self.end <= end + 1e-6)
        return Moments(self.start[inside], self.end[inside], self.score[inside], self.sureness[inside])


@dataclass(frozen=True, eq=False)
class Curve:
    """The query's score on each clip of a video, where the clips lie, and what is known of the scenes.

    >>> curve = Curve.regular([0.1, 0.4, 0.4, 0.1], seconds=1.5, duration=5.7)
    >>> curve.edges.tolist(), curve.duration
    ([0.0, 1.5, 3.0, 4.5, 5.7], 5.7)
    """

    scores: Floats32
    """(T,) cosine of query and clip."""
    edges: FloatArray
    """(T + 1,) boundaries of the clips in seconds, ascending; the last one is the video's duration."""
    features: Floats32 | None = None
    """(T, d) unit vectors of the clips; without them scenes are found in the scores alone."""
    shots: FloatArray = field(default_factory=lambda: np.empty(0))
    """Times of the cuts in seconds, ascending; may be empty."""
    level: Background | None = None
    bounds: Boundaries | None = None
    moments: Moments | None = None

    def __post_init__(self) -> None:
        scores = np.ascontiguousarray(self.scores, dtype=np.float32)
        edges = np.ascontiguousarray(self.edges, dtype=np.float64)
        shots = np.asarray(self.shots, dtype=np.float64)
        if scores.ndim != 1 or not len(scores) or edges.shape != (len(scores) + 1,):
            raise MomentseekError(
                f"a curve needs T >= 1 scores and T + 1 edges, not {scores.shape} and {edges.shape}; give both per clip"
            )
        if not (np.isfinite(scores).all() and np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
            raise MomentseekError("a curve's scores must be finite and its edges ascend; check the clip vectors")
        if self.features is not None and (self.features.ndim != 2 or len(self.features) != len(scores)):
            raise MomentseekError(
                f"a curve of {len(scores)} clips needs as many rows of features, not {self.features.shape}; give (T, d)"
            )
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "shots", shots)

    @classmethod
    def regular(
        cls,
        scores: ArrayLike,
        seconds: float,
        duration: float | None = None,
        *,
        features: Floats32 | None = None,
        shots: ArrayLike = (),
        level: Background | None = None,
    ) -> Curve:
        """Clips of equal length from 0 on, the last one as long as the video lasts."""
        values = np.asarray(scores, dtype=np.float32)
        edges: FloatArray = np.arange(len(values) + 1, dtype=np.float64) * seconds
        if duration is not None:
            edges[-1] = duration
        return cls(values, edges, features, np.asarray(shots, dtype=np.float64), level)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def duration(self) -> float:
        return float(self.edges[-1])

    @property
    def middles(self) -> FloatArray:
        """Times of the clips' middles: where their frames were taken."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    def part(self, first: int, last: int) -> Curve:
        """Clips ``first`` to ``last`` (exclusive) alone; times stay those of the video."""
        edges = self.edges[first : last + 1]
        shots = self.shots[(self.shots > edges[0]) & (self.shots < edges[-1])]
        features = None if self.features is None else self.features[first:last]
        bounds = None if self.bounds is None else self.bounds.part(first, last)
        moments = None if self.moments is None else self.moments.part(float(edges[0]), float(edges[-1]))
        return Curve(self.scores[first:last], edges, features, shots, self.level, bounds, moments)
