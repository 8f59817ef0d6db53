"""k-means with k-means++ seeding, in numpy, seeded: the scenes of a video are a few hundred points at most."""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray


def squared(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Squared distances (n, k)."""
    result: FloatArray = np.maximum(
        (points**2).sum(1)[:, None] - 2 * points @ centres.T + (centres**2).sum(1)[None, :], 0.0
    )
    return result


def kmeans(points: FloatArray, k: int, seed: int = 0, rounds: int = 20) -> FloatArray:
    """Centres (≤ k, d): seeds drawn with probability ∝ squared distance to the nearest one so far, then Lloyd's rounds.

    Equal points give fewer centres. The same points always give the same centres.

    >>> np.sort(kmeans(np.array([[0.0], [0.2], [5.0], [5.2]]), 2), axis=0).round(3).tolist()
    [[0.1], [5.1]]
    """
    draw = np.random.default_rng(seed)
    centres = points[[int(draw.integers(len(points)))]]
    nearest = squared(points, centres)[:, 0]
    while len(centres) < min(k, len(points)) and nearest.sum() > 1e-12:
        pick = int(np.searchsorted(np.cumsum(nearest), draw.random() * nearest.sum()))
        centres = np.concatenate((centres, points[[min(pick, len(points) - 1)]]))
        nearest = np.minimum(nearest, squared(points, centres[-1:])[:, 0])
    labels = None
    for _ in range(rounds):
        new = squared(points, centres).argmin(1)
        if labels is not None and (new == labels).all():
            break
        labels = new
        member = (labels[None, :] == np.arange(len(centres))[:, None]).astype(np.float64)
        size = member.sum(1, keepdims=True)
        centres = np.where(size > 0, member @ points / np.maximum(size, 1), centres)
    return centres
