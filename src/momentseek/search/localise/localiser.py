"""Localisers: their input (:class:`Curve`), their output (:class:`Proposals`), their registry, and how they run.

A localiser is a function of a curve, in a file of this folder, that registers itself:

    @LOCALISERS.register("whole")
    def whole(curve: Curve) -> Proposals: ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, Positions
from momentseek.core.ranking import suppress as unsuppressed
from momentseek.core.registry import Registry
from momentseek.recognition.exported.span_head import SpanCurves

if TYPE_CHECKING:
    from momentseek.recognition.exported.boundary_head import Boundaries
    from momentseek.recognition.exported.moment_map import MomentScores


Floats32 = NDArray[np.float32]

DEFAULT_LOCALISER = "height"
LEARNED_LOCALISER = "learned"
"""The default if a trained model that finds spans of clips (XML, ReLoCLNet, Slate) made the library's vectors."""
MAP_LOCALISER = "map"
"""The default if a trained model that keeps vectors of moments (MMN, CroCs) made them."""
MAX_CLIPS = 400
"""Largest number of clips that a localiser gets at once: ten minutes of clips of 1.5 s."""
MAX_SPANS = 5
"""Largest number of spans of one video in a ranking."""


@dataclass(frozen=True, eq=False)
class Background:
    """The distribution of the query's scores on the clips of the whole library, most of which are unrelated to it.

    >>> Background.of([0.1, 0.2, 0.3]).mean.round(3)
    np.float64(0.2)
    """

    mean: float
    sd: float
    """Standard deviation of the scores."""
    quantiles: FloatArray
    """Quantiles of the scores at 0, 1/n, …, 1 (n + 1 values, evenly spaced in probability)."""

    @classmethod
    def of(cls, scores: ArrayLike, bins: int = 100) -> Background:
        """Estimate the background from a sample of scores."""
        s = np.asarray(scores, dtype=np.float64)
        return cls(s.mean(), s.std(), np.quantile(np.sort(s), np.linspace(0, 1, bins + 1)))  # sorted: 3 × as fast

    def quantile(self, share: float) -> float:
        """The score that a ``share`` of the library's clips are below.

        >>> Background.of(range(101)).quantile(0.25)
        25.0
        """
        return float(np.interp(share, np.linspace(0, 1, len(self.quantiles)), self.quantiles))

    @cached_property
    def quartiles(self) -> tuple[float, float, float]:
        """The scores that a quarter, a half and three quarters of the library's clips are below."""
        return self.quantile(0.25), self.quantile(0.5), self.quantile(0.75)


@dataclass(frozen=True, eq=False)
class Curve:
    """A query's score on each clip of one video, the times of the clips, and what is known about the scenes.

    This is the only input of a localiser.

    >>> curve = Curve.regular([0.1, 0.4, 0.4, 0.1], seconds=1.5, duration=5.7)
    >>> curve.edges.tolist(), curve.duration
    ([0.0, 1.5, 3.0, 4.5, 5.7], 5.7)
    """

    scores: Floats32
    """(T,) cosine of query and clip."""
    edges: FloatArray
    """(T + 1,) boundaries of the clips in seconds, ascending; the last one is the video's duration."""
    features: Floats32 | None = None
    """(T, d) unit vectors of the clips; without them, scenes are found from the scores alone."""
    shots: FloatArray = field(default_factory=lambda: np.empty(0))
    """Times of the cuts in seconds, ascending; may be empty."""
    background: Background | None = None
    """How the query scores on the whole library, if that is known."""
    bounds: Boundaries | SpanCurves | None = None
    """Scores of starts and ends by a trained head, if such a model made the library's vectors."""
    moments: MomentScores | None = None
    """Scores of the video's moments by a trained map model, if one made the library's vectors."""

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
        background: Background | None = None,
    ) -> Curve:
        """A curve of clips of ``seconds`` each, from 0; the last clip ends at ``duration``, if given."""
        values = np.asarray(scores, dtype=np.float32)
        edges: FloatArray = np.arange(len(values) + 1, dtype=np.float64) * seconds
        if duration is not None:
            edges[-1] = duration
        return cls(values, edges, features, np.asarray(shots, dtype=np.float64), background)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def duration(self) -> float:
        """The end of the last clip, in seconds."""
        return float(self.edges[-1])

    @cached_property
    def middles(self) -> FloatArray:
        """Times of the clips' middles in seconds: where their frames were taken."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    @cached_property
    def cuts(self) -> tuple[Positions, FloatArray]:
        """Each cut inside the video: the boundary of clips it belongs to, and its time.

        That boundary is the one between the two clips whose middle frames the cut separates.
        """
        edge = np.searchsorted(self.middles, self.shots)
        inner = (edge > 0) & (edge < len(self))
        return edge[inner], self.shots[inner]

    def part(self, first: int, last: int) -> Curve:
        """Clips ``first`` to ``last`` (exclusive) alone; times stay those of the video."""
        edges = self.edges[first : last + 1]
        shots = self.shots[(self.shots > edges[0]) & (self.shots < edges[-1])]
        features = None if self.features is None else self.features[first:last]
        bounds = None if self.bounds is None else self.bounds.part(first, last)
        moments = None if self.moments is None else self.moments.part(float(edges[0]), float(edges[-1]))
        return Curve(self.scores[first:last], edges, features, shots, self.background, bounds, moments)

    def around(self, start: float, end: float, context: float) -> Curve:
        """The clips from ``context`` seconds before ``start`` to ``context`` seconds after ``end``, at least one."""
        return self.part(*clips_around(self.edges, start, end, context))

    def inside(self, start: float, end: float) -> NDArray[np.bool_]:
        """Mask of the clips whose middle is in a span; if there is none, the clip that contains the span's middle."""
        inside = (self.middles >= start) & (self.middles < end)
        if not inside.any():
            at = int(np.searchsorted(self.edges, (start + end) / 2, side="right")) - 1
            inside[min(max(at, 0), len(self) - 1)] = True
        return inside

    def peak(self, start: float, end: float) -> float:
        """The middle of the best clip inside a span, in seconds: the time of the frame to show."""
        inside = np.flatnonzero((self.middles >= start) & (self.middles < end))
        if not len(inside):
            return (start + end) / 2
        return float(self.middles[inside[np.argmax(self.scores[inside])]])


def clips_around(edges: FloatArray, start: float, end: float, context: float) -> tuple[int, int]:
    """The first of the clips within ``context`` seconds of a time, and the one after the last; at least one clip.

    >>> clips_around(np.array([0.0, 1.5, 3.0, 4.5, 6.0]), 3.2, 3.4, 0.5)
    (1, 3)
    """
    count = len(edges) - 1
    first = int(np.searchsorted(edges, start - context, side="right")) - 1
    last = int(np.searchsorted(edges, end + context, side="left"))
    first = min(max(first, 0), count - 1)
    return first, max(first + 1, min(last, count))


@dataclass(frozen=True, eq=False)
class Proposals:
    """The spans of one video that a localiser proposes, with their scores, best first.

    >>> spans = Proposals.from_columns([0.0, 6.0], [3.0, 9.0], [0.2, 0.3], [1.5, 7.5])
    >>> spans.start.tolist(), len(spans)
    ([6.0, 0.0], 2)
    """

    start: FloatArray
    end: FloatArray
    score: FloatArray
    """Comparable across videos for one query, so that spans of many videos can be ranked together."""
    peak: FloatArray
    """The middle of the best clip inside, in seconds: the time of the frame to show."""

    @classmethod
    def from_columns(cls, start: ArrayLike, end: ArrayLike, score: ArrayLike, peak: ArrayLike) -> Proposals:
        """Proposals from columns in any order; ties go to the earlier and then the shorter span."""
        s, e, v, p = (np.asarray(x, dtype=np.float64) for x in (start, end, score, peak))
        order = np.lexsort((e, s, -v))
        return cls(s[order], e[order], v[order], p[order])

    @classmethod
    def of_clips(
        cls,
        curve: Curve,
        first: Positions,
        last: Positions,
        score: ArrayLike,
        start: FloatArray | None = None,
        end: FloatArray | None = None,
    ) -> Proposals:
        """Proposals of clips ``first`` … ``last`` (exclusive); ``start`` and ``end`` give more exact times if known."""
        middles = curve.middles
        best = [a + int(np.argmax(curve.scores[a:b])) for a, b in zip(first, last, strict=True)]
        starts = curve.edges[first] if start is None else start
        ends = curve.edges[last] if end is None else end
        return cls.from_columns(starts, ends, score, np.clip(middles[best], starts, ends))

    @classmethod
    def from_parts(cls, parts: list[Proposals]) -> Proposals:
        """Proposals for several stretches of one video as one ranking."""
        columns = (np.concatenate([getattr(p, c) for p in parts]) for c in ("start", "end", "score", "peak"))
        return cls.from_columns(*columns)

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: Positions | slice) -> Proposals:
        """The proposals at ``index``, in that order."""
        return Proposals(self.start[index], self.end[index], self.score[index], self.peak[index])


Localiser = Callable[[Curve], Proposals]
"""Proposes spans on a curve, best first: at least one, all inside the video."""

LOCALISERS: Registry[Localiser] = Registry("localiser", "momentseek.search.localise", group="localisers")
"""All localisers by the names that ``--localiser`` takes."""


def suppress(spans: Proposals, iou: float = 0.5, limit: int | None = None) -> Proposals:
    """Greedy non-maximum suppression: a span that overlaps a better one by more than ``iou`` is dropped.

    Overlapping spans are dropped, never joined: their union is wider than any of them and scores worse
    (docs/architecture.md).

    >>> spans = Proposals.from_columns([0, 1, 20], [10, 10, 30], [0.9, 0.8, 0.7], [5, 5, 25])
    >>> suppress(spans).start.tolist()
    [0.0, 20.0]
    """
    return spans.take(np.flatnonzero(unsuppressed(spans.start, spans.end, iou, limit)))


def localise(curve: Curve, name: str = DEFAULT_LOCALISER, limit: int = MAX_SPANS) -> Proposals:
    """The best ``limit`` spans of a curve by the localiser ``name``, near-duplicates suppressed.

    A curve longer than :data:`MAX_CLIPS` clips is first reduced to neighbourhoods of its best peaks, so that time and
    memory stay linear in the number of clips. The neighbourhoods may touch but never overlap.

    >>> scores = np.full(24_000, 0.1)
    >>> scores[[*range(600, 620), *range(9_000, 9_010)]] = 0.3
    >>> spans = localise(Curve.regular(scores, seconds=1.5), "watershed", limit=2)
    >>> spans.start.tolist(), spans.end.tolist()
    ([900.0, 13500.0], [930.0, 13515.0])
    >>> localise(Curve.regular(scores, seconds=1.5), "watersheds")
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: there is no localiser 'watersheds'; did you mean 'watershed'?
    """
    propose = LOCALISERS[name]
    by_curves = name == LEARNED_LOCALISER and isinstance(curve.bounds, SpanCurves)
    if len(curve) <= MAX_CLIPS or by_curves or (name == MAP_LOCALISER and curve.moments is not None):
        return suppress(propose(curve), limit=limit)
    if curve.background is None:
        curve = replace(curve, background=Background.of(curve.scores))
    parts = [propose(curve.part(*place)) for place in peak_neighbourhoods(curve, limit)]
    return suppress(Proposals.from_parts(parts), limit=limit)


def peak_neighbourhoods(curve: Curve, count: int) -> list[tuple[int, int]]:
    """Up to ``count`` disjoint stretches of at most :data:`MAX_CLIPS` clips around the best peaks of the curve."""
    smooth: FloatArray = np.convolve(curve.scores.astype(np.float64), (0.25, 0.5, 0.25), mode="same")
    smooth[[0, -1]] /= 0.75  # the window extends beyond the edge there
    free = np.ones(len(curve), dtype=bool)
    places: list[tuple[int, int]] = []
    while free.any() and len(places) < count:
        peak = int(np.argmax(np.where(free, smooth, -np.inf)))
        first, last = max(0, peak - MAX_CLIPS // 2), min(len(curve), peak + MAX_CLIPS // 2)
        taken = np.flatnonzero(~free[first:last]) + first
        first = max((int(i) + 1 for i in taken if i < peak), default=first)
        last = min((int(i) for i in taken if i > peak), default=last)
        free[first:last] = False
        places.append((first, last))
    return places
