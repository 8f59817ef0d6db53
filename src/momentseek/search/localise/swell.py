"""The background of a curve: the slow swell that the query's score follows where nothing happens."""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray

ABOVE = 0.1
"""Weight of clips that stand out: they are likelier moment than background."""
STIFF = 0.15
"""How much bend costs, per clip."""
START = 0.3
"""Quantile to begin from: below the median, since moments may fill more than half of a short video."""
ROUNDS = 6


def background(values: FloatArray) -> tuple[FloatArray, float]:
    """A stiff parabola under the curve, and the spread of the clips about it.

    Least squares in which clips more than one spread above weigh :data:`ABOVE`, with a ridge on slope and bend so
    that a plateau is not taken for drift. The spread is that of the clips below: moments only ever add to the score.

    >>> level, spread = background(np.array([0.0, 0.1, 0.0, 0.1] * 8 + [0.9] * 8))
    >>> bool(level.max() < 0.3), round(spread, 2)
    (True, 0.05)
    """
    t = np.linspace(-1, 1, len(values))
    basis = np.stack((np.ones_like(t), t, t * t))
    ridge = np.diag([1e-9, 1.0, 1.0]) * STIFF * len(values)
    level: FloatArray = np.full(len(values), np.quantile(values, START))
    outstanding = np.zeros(len(values), dtype=bool)
    for _ in range(ROUNDS):
        before, outstanding = outstanding, values - level > spread_below(values - level)
        if (outstanding == before).all():
            break
        weighted = basis * np.where(outstanding, ABOVE, 1.0)
        level = np.linalg.solve(weighted @ basis.T + ridge, weighted @ values) @ basis
    return level, spread_below(values - level)


def spread_below(rest: FloatArray) -> float:
    """Root mean square of the negative ones."""
    below = rest[rest < 0]
    return float(np.sqrt((below**2).mean())) if len(below) else 0.0
