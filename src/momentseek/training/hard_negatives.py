"""Hard negatives: those a trained model scores about as high as the truth (CroCs, eq. 2, 3, after SimANS).

What scores far below the truth teaches nothing, what scores far above is probably right and merely not annotated; so
``p(v|q) ∝ exp(-a (r(q, v) - mean of r(q, v+))²)`` over a query's negative videos, and the same for a video's queries.
The paper prints no a (it is 1); scores between 0 and 1 then make the draw almost even, so ``sharpness`` may be raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

SCORE_SCALE = 65534
"""A score of 1 as it is kept: 16 bits hold scores from 0 to 1 to within 1/130,000, in a quarter of float64's space."""
NEVER_DRAWN = 65535
"""Kept for pairs that are true or related, and never drawn."""


def logits(scores: Floats, aim: Floats, allowed: Bools, sharpness: float = 1.0, pool: int = 0) -> Floats:
    """(rows, columns): ``-a (r - aim)²``, minus infinity for what may not be drawn.

    With ``pool``, only that many best-scored allowed columns of each row may be.

    >>> scores, allowed = np.array([[0.5, 0.75, 0.0]]), np.array([[False, True, True]])
    >>> logits(scores, np.array([0.5]), allowed, sharpness=8).tolist()
    [[-inf, -0.5, -2.0]]
    """
    if 0 < pool < scores.shape[1]:
        held = np.where(allowed, scores, -np.inf)
        least = np.partition(held, -pool, axis=1)[:, -pool][:, None]
        allowed = allowed & (held >= least)
    result: Floats = np.where(allowed, -sharpness * (scores - aim[:, None]) ** 2, -np.inf)
    return result


def draw(logits: Floats, count: int, rng: np.random.Generator) -> list[Ints]:
    """Up to ``count`` different columns of each row, by ``exp(logits)`` one after another, in rising order.

    Gumbel's trick: the largest of logits plus Gumbel noise are such a draw, without a loop over draws.
    """
    drawn = rng.standard_exponential(logits.shape, dtype=np.float32)
    keys = logits - np.log(np.maximum(drawn, np.float32(1e-30)))
    count = min(count, keys.shape[1])
    best = np.argpartition(-keys, count - 1, axis=1)[:, :count]
    return [np.sort(row[np.isfinite(logits[i, row])]) for i, row in enumerate(best)]


@dataclass(frozen=True, eq=False)
class NegativePairs:
    """The hard negatives of a step: of which query (video) which videos (queries), as places in the truth."""

    queries: Ints
    videos: Ints

    def __iter__(self) -> Iterator[Ints]:
        return iter((self.queries, self.videos))


class HardNegatives:
    """Scores of all training queries and videos, and what is drawn by them."""

    def __init__(
        self, kept: NDArray[np.uint16], query_aim: Floats, video_aim: Floats, *, videos: int, queries: int,
        sharpness: float = 1.0, pool: int = 0,
    ) -> None:  # fmt: skip
        """``kept`` (queries, videos): scores times ``SCORE_SCALE``, or ``NEVER_DRAWN``; the aims average true pairs."""
        self.kept, self.query_aim, self.video_aim = kept, query_aim, video_aim
        self.videos, self.queries = videos, queries
        self.sharpness, self.pool = sharpness, pool

    def videos_of(self, queries: Ints, rng: np.random.Generator) -> NegativePairs | None:
        """``videos`` hard negatives of each of these queries; None if none are wanted."""
        if not self.videos:
            return None
        found = self._draw(self.kept[queries], self.query_aim[queries], self.videos, rng)
        return NegativePairs(np.repeat(queries, [len(f) for f in found]), np.concatenate(found))

    def queries_of(self, videos: Ints, rng: np.random.Generator) -> NegativePairs | None:
        """``queries`` hard negatives of each of these videos; None if none are wanted."""
        if not self.queries:
            return None
        found = self._draw(self.kept[:, videos].T, self.video_aim[videos], self.queries, rng)
        return NegativePairs(np.concatenate(found), np.repeat(videos, [len(f) for f in found]))

    def _draw(self, kept: NDArray[np.uint16], aim: Floats, count: int, rng: np.random.Generator) -> list[Ints]:
        scores = kept.astype(np.float32) / np.float32(SCORE_SCALE)
        return draw(logits(scores, aim, kept != NEVER_DRAWN, self.sharpness, self.pool), count, rng)
