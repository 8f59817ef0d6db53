"""Where in their videos moments lie: densities over (start, end), their divergence and concentration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from momentseek.moments.arrays import FloatArray

GRID_BINS = 20
POSSIBLE_CELLS = GRID_BINS * (GRID_BINS + 1) // 2
"""Cells that can hold a moment, as it does not end before it starts."""
RESAMPLES = 20


@dataclass(frozen=True, eq=False)
class Density:
    """Counts over a 20 × 20 grid of start (rows) and end (columns), each a share of the video's length."""

    counts: FloatArray

    @property
    def moments(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    @property
    def effective_cells(self) -> float:
        """2 to the power of the entropy: as many equally full cells would be as spread out (1 … 210)."""
        share = self.counts[self.counts > 0] / max(1.0, float(self.counts.sum()))
        return float(2 ** -(share * np.log2(share)).sum()) if len(share) else float("nan")

    @property
    def fullest(self) -> float:
        """The share of moments in the fullest cell."""
        return float(self.counts.max() / self.counts.sum()) if self.counts.sum() else float("nan")


def density(start: ArrayLike, end: ArrayLike) -> Density:
    """Moments by where they start and end, as shares of the video clipped to [0, 1].

    >>> grid = density([0.0, 0.0, 0.5], [1.0, 1.0, 0.99])
    >>> int(grid.counts[0, 19]), round(grid.fullest, 2), round(grid.effective_cells, 2)
    (2, 0.67, 1.89)
    """
    rows, columns = (np.clip(np.asarray(x, dtype=np.float64), 0, 1) for x in (start, end))
    counts, _, _ = np.histogram2d(rows, columns, bins=GRID_BINS, range=[[0, 1], [0, 1]])
    return Density(counts)


def divergence(one: Density, two: Density) -> float:
    r"""Jensen–Shannon divergence, base 2: 0 for the same density, 1 for two that share no cell.

    .. math:: JS = H\left(\frac{p + q}{2}\right) - \frac{H(p) + H(q)}{2}

    >>> whole, beginning = density([0.0], [1.0]), density([0.0], [0.1])
    >>> divergence(whole, whole), divergence(whole, beginning)
    (0.0, 1.0)
    """
    if not one.moments or not two.moments:
        return float("nan")
    p, q = (d.counts / d.counts.sum() for d in (one, two))
    return min(1.0, max(0.0, _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2))


def divergence_by_chance(truth: Density, moments: int, seed: int = 0) -> float:
    """The mean divergence from ``truth`` of ``moments`` drawn from it: what perfect predictions' scatter would give."""
    if not truth.moments or not moments:
        return float("nan")
    rng = np.random.default_rng(seed)
    share = (truth.counts / truth.counts.sum()).ravel()
    drawn = rng.multinomial(moments, share, RESAMPLES).reshape(RESAMPLES, GRID_BINS, GRID_BINS)
    return float(np.mean([divergence(truth, Density(counts.astype(np.float64))) for counts in drawn]))


def _entropy(p: FloatArray) -> float:
    positive = p[p > 0]
    return float(-(positive * np.log2(positive)).sum())
