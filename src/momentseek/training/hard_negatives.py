"""Hard negatives: those a trained model scores about as high as the truth (CroCs, eq. 2, 3, after SimANS).

What scores far below the truth teaches nothing, what scores far above is probably right and merely not annotated; so
``p(v|q) ∝ exp(-a (r(q, v) - mean of r(q, v+))²)`` over a query's negative videos, and the same for a video's queries.
The paper prints no a (it is 1); scores between 0 and 1 then make the draw almost even, so ``sharpness`` may be raised.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def probabilities(scores: Floats, positive: Bools, related: Bools, sharpness: float = 1.0, pool: int = 0) -> Floats:
    """(queries, videos): how likely each video is to be drawn for each query; rows sum to 1, or to 0 without any.

    ``positive`` are the true pairs, whose mean score is aimed at; ``related`` ones are never drawn. With ``pool``, only
    that many best-scored negatives of each query may be. For queries of videos, pass everything transposed.

    >>> scores, true = np.array([[0.9, 0.8, 0.1]]), np.array([[True, False, False]])
    >>> probabilities(scores, true, true, sharpness=10).round(3).tolist()
    [[0.0, 0.998, 0.002]]
    """
    count = positive.sum(1, keepdims=True)
    aim = np.where(
        count, (scores * positive).sum(1, keepdims=True) / np.maximum(count, 1), scores.max(1, keepdims=True)
    )
    allowed = ~(positive | related)
    if 0 < pool < scores.shape[1]:
        held = np.where(allowed, scores, -np.inf)
        least = np.partition(held, -pool, axis=1)[:, -pool][:, None]
        allowed &= held >= least
    weights = np.where(allowed, np.exp(-sharpness * (scores - aim) ** 2), 0.0)
    total = weights.sum(1, keepdims=True)
    chances: Floats = weights / np.where(total > 0, total, 1.0)
    return chances


def draw(chances: Floats, rows: NDArray[np.int64], count: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Up to ``count`` different columns for each of ``rows``, by their chances (Gumbel's trick: no loop over draws)."""
    drawn = []
    for chance in chances[rows]:
        possible = np.flatnonzero(chance)
        keys = np.log(chance[possible]) + rng.gumbel(size=len(possible))
        drawn.append(np.sort(possible[np.argsort(-keys, kind="stable")[:count]]))
    return drawn
