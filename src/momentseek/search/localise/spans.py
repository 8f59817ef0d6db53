"""Spans: what a localiser proposes, best first; and the suppression of those that say the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from momentseek.moments.arrays import FloatArray
from momentseek.ranking.suppress import suppress as unlike
from momentseek.search.localise.curve import Curve


@dataclass(frozen=True, eq=False)
class Spans:
    """Stretches of one video with their scores, best first.

    >>> spans = Spans.ranked([0.0, 6.0], [3.0, 9.0], [0.2, 0.3], [1.5, 7.5])
    >>> spans.start.tolist(), len(spans)
    ([6.0, 0.0], 2)
    """

    start: FloatArray
    end: FloatArray
    score: FloatArray
    """Comparable across videos for one query: spans of many videos may be ranked together by it."""
    peak: FloatArray
    """The middle of the best clip inside: the frame to show."""

    @classmethod
    def ranked(cls, start: ArrayLike, end: ArrayLike, score: ArrayLike, peak: ArrayLike) -> Spans:
        """From columns in any order; ties go to the earlier and then the shorter span."""
        s, e, v, p = (np.asarray(x, dtype=np.float64) for x in (start, end, score, peak))
        order = np.lexsort((e, s, -v))
        return cls(s[order], e[order], v[order], p[order])

    @classmethod
    def of_clips(
        cls,
        curve: Curve,
        first: NDArray[np.intp],
        last: NDArray[np.intp],
        score: ArrayLike,
        start: FloatArray | None = None,
        end: FloatArray | None = None,
    ) -> Spans:
        """Of runs of clips ``first`` … ``last`` (exclusive); ``start`` and ``end`` where finer edges are known."""
        middles = curve.middles
        best = [a + int(np.argmax(curve.scores[a:b])) for a, b in zip(first, last, strict=True)]
        starts = curve.edges[first] if start is None else start
        ends = curve.edges[last] if end is None else end
        return cls.ranked(starts, ends, score, np.clip(middles[best], starts, ends))

    @classmethod
    def joined(cls, parts: list[Spans]) -> Spans:
        """Spans of several stretches of one video as one ranking."""
        columns = (np.concatenate([getattr(p, c) for p in parts]) for c in ("start", "end", "score", "peak"))
        return cls.ranked(*columns)

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: NDArray[np.intp] | slice) -> Spans:
        """Those at ``index``, in that order."""
        return Spans(self.start[index], self.end[index], self.score[index], self.peak[index])


def suppress(spans: Spans, iou: float = 0.5, limit: int | None = None) -> Spans:
    """Greedy non-maximum suppression: a span that overlaps a better one by more than ``iou`` is dropped.

    Spans are chosen, never glued: the union of overlapping hits is wider than any of them and finds less
    (facts in docs/localising.md).

    >>> spans = Spans.ranked([0, 1, 20], [10, 10, 30], [0.9, 0.8, 0.7], [5, 5, 25])
    >>> suppress(spans).start.tolist()
    [0.0, 20.0]
    """
    return spans.take(np.flatnonzero(unlike(spans.start, spans.end, iou, limit)))
