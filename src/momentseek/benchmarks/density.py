"""Gaussian kernel density of points in the plane, fast enough for whole datasets and exact where it matters.

Points are sorted into square cells, and sums are cut off at a radius. The error of the cut-off is bounded, and
``sparsest_points`` computes the full sum for points that are closer than that bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray

CUTOFF_BANDWIDTHS = 6.0
"""Cut-off radius of sums, in bandwidths; a point further away adds less than 1.6e-8 of a point at distance 0."""
KERNEL_VALUES_AT_ONCE = 1 << 17
"""Number of kernel values computed at once, chosen to fit into a processor's cache."""
CELLS_PER_RADIUS = 2
"""Number of cell widths per radius."""
MAX_CELLS = 1e9
EQUAL_DIGITS = 12
"""Densities that agree in this number of digits are equal, up to rounding errors."""


@dataclass(frozen=True, slots=True)
class SparsestPoints:
    """The ``k`` points with the lowest density, and how clear the cut is."""

    chosen: BoolArray
    gap: float
    """Relative difference in density between the first point left and the last one chosen; 0 if equal."""
    tied: int
    """Number of points as dense as the last one chosen, if only the first of them were taken; otherwise 0."""


def kernel_sums(points: ArrayLike, at: ArrayLike, bandwidth: float, radius: float = CUTOFF_BANDWIDTHS) -> FloatArray:
    r"""Return the sum of Gaussian kernels of ``points`` at each point of ``at``: the density up to a constant factor.

    .. math:: K(a) = \sum_j \exp\left(-\frac{|a - p_j|^2}{2 h^2}\right), \qquad
              \hat f(a) = \frac{K(a)}{2 \pi h^2 N}

    Points nearer than ``radius`` bandwidths all count, so at most :math:`N e^{-radius^2/2}` is missing.

    >>> kernel_sums([[0, 0], [0, 0], [3, 4]], [[0, 0], [3, 4]], bandwidth=5).round(4).tolist()
    [2.6065, 2.2131]
    """
    if not bandwidth > 0:
        raise MomentseekError(f"the bandwidth of a density must be positive, not {bandwidth:g}")
    scale = 1 / (np.sqrt(2) * bandwidth)
    known, weight = np.unique(_plane(points) * scale, axis=0, return_counts=True)
    places = _plane(at) * scale
    if not len(known) or not len(places):
        return np.zeros(len(places))
    return _by_cells(known, weight.astype(np.float64), places, radius / np.sqrt(2))


def sparsest_points(points: ArrayLike, k: int, bandwidth: float) -> SparsestPoints:
    """Return the ``k`` points with the lowest density; of equally dense ones, the first.

    Sums cut off at ``CUTOFF_BANDWIDTHS`` decide nearly all points with certainty. The few that could be on either side
    are summed again over all points, so that the result is that of the full sum.

    >>> sparsest_points([[0.1, 0.2], [0.1, 0.2], [0.1, 0.21], [0.5, 0.9]], 1, bandwidth=0.02).chosen.tolist()
    [False, False, False, True]
    """
    plane = _plane(points)
    if not 0 < k < len(plane):
        raise MomentseekError(f"{k} of {len(plane)} points cannot be set apart; some must be taken and some left")
    distinct, back = np.unique(plane, axis=0, return_inverse=True)
    sums = kernel_sums(plane, distinct, bandwidth)[back.reshape(-1)]
    missing = len(plane) * np.exp(-(CUTOFF_BANDWIDTHS**2) / 2)
    cut = float(np.partition(sums, k - 1)[k - 1])
    unsure = np.flatnonzero((sums >= cut - missing) & (sums <= cut + missing * 2))
    sums[unsure] = kernel_sums(plane, plane[unsure], bandwidth, radius=np.inf)
    rounded = np.round(sums / cut, EQUAL_DIGITS)
    order = np.argsort(rounded, kind="stable")
    chosen = np.zeros(len(plane), dtype=bool)
    chosen[order[:k]] = True
    last, following = rounded[order[k - 1]], rounded[order[k]]
    tied = int((rounded == last).sum()) if last == following else 0
    return SparsestPoints(chosen, float(following - last), tied)


def whiten(points: ArrayLike) -> tuple[FloatArray, float]:
    r"""Transform points so that their covariance is the unit matrix; return them and Scott's bandwidth for them.

    An isotropic density of the result is, up to a constant factor, the density with the full covariance
    :math:`\Sigma N^{-1/3}` that ``scipy.stats.gaussian_kde`` takes by default (Scott 1992, :math:`N^{-1/(d+4)}`).

    >>> plane, bandwidth = whiten([[0, 0], [2, 0], [0, 4], [2, 4]])
    >>> np.allclose(np.cov(plane.T), np.eye(2)), round(bandwidth, 4)
    (True, 0.7937)
    """
    plane = _plane(points)
    covariance = np.cov(plane.T) if len(plane) > 1 else np.zeros((2, 2))
    smallest, largest = np.linalg.eigvalsh(covariance)
    if smallest <= largest * np.finfo(float).eps * len(plane):
        raise MomentseekError(
            "all moments are on one line, which has no density in the plane; choose a bandwidth instead of Scott's rule"
        )
    factor = np.linalg.cholesky(covariance)
    return np.linalg.solve(factor, plane.T).T, len(plane) ** (-1 / 6)


def _plane(points: ArrayLike) -> FloatArray:
    plane = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    if not np.isfinite(plane).all():
        raise MomentseekError("a density needs points that are finite numbers")
    return plane


def _by_cells(known: FloatArray, weight: FloatArray, places: FloatArray, radius: float) -> FloatArray:
    """Compute the sums cell by cell, from the points of all cells within the radius."""
    low = known.min(axis=0)
    extent = float((known.max(axis=0) - low).max())
    sums = np.zeros(len(places))
    if radius >= extent:
        _add(sums, np.arange(len(places)), places, known, weight)
        return sums
    side = radius / CELLS_PER_RADIUS
    if extent / side > MAX_CELLS:
        raise MomentseekError("a density needs points within 1,000,000,000 bandwidths; check the data for wrong times")
    cell = np.floor((known - low) / side).astype(np.int64)
    columns, rows = cell.max(axis=0) + 1
    key = cell[:, 0] * rows + cell[:, 1]
    order = np.argsort(key, kind="stable")
    key, known, weight = key[order], known[order], weight[order]
    # Positions beyond all points belong to a cell just outside the grid, which still has neighbours in it.
    home = np.clip(
        np.floor((places - low) / side), -CELLS_PER_RADIUS - 1, (columns + CELLS_PER_RADIUS, rows + CELLS_PER_RADIUS)
    ).astype(np.int64)
    homes, member = np.unique(home, axis=0, return_inverse=True)
    members = np.split(np.argsort(member.reshape(-1), kind="stable"), np.cumsum(np.bincount(member.reshape(-1)))[:-1])
    column = homes[:, :1] + np.arange(-CELLS_PER_RADIUS, CELLS_PER_RADIUS + 1)
    first = np.maximum(homes[:, 1:] - CELLS_PER_RADIUS, 0)
    last = np.minimum(homes[:, 1:] + CELLS_PER_RADIUS, rows - 1)
    seen = (column >= 0) & (column < columns) & (first <= last)
    begin = np.searchsorted(key, column * rows + first, "left") * seen
    stop = np.searchsorted(key, column * rows + last, "right") * seen
    for mine, strips in zip(members, np.stack([begin, stop], axis=2).tolist(), strict=True):
        for a, b in strips:
            if a < b:
                _add(sums, mine, places[mine], known[a:b], weight[a:b])
    return sums


def _add(sums: FloatArray, mine: IntArray, places: FloatArray, known: FloatArray, weight: FloatArray) -> None:
    """Add the kernels of ``known`` at ``places`` to ``sums[mine]``, a tile at a time."""
    step = max(1, KERNEL_VALUES_AT_ONCE // len(known))
    for i in range(0, len(places), step):
        some = places[i : i + step]
        distance = np.subtract.outer(some[:, 0], known[:, 0])
        distance *= distance
        other = np.subtract.outer(some[:, 1], known[:, 1])
        other *= other
        distance += other
        np.negative(distance, out=distance)
        np.exp(distance, out=distance)
        sums[mine[i : i + step]] += distance @ weight
