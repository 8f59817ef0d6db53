"""Products of matrices and main directions on the calling thread alone.

NumPy's BLAS shares them among threads that wait for each other busily: on a busy machine a decomposition that takes a
twentieth of a second then takes seconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from momentseek.native.library import address, call, kernels, writable
from momentseek.native.panels import float_panels, panel_places

Floats = NDArray[np.float32]
ROUNDS = 6
"""Power steps: directions whose variances differ by a factor of two are apart by 1.6 % then."""
LEAST_SHARE = 1e-5
"""Variance that every direction is given beside its own, as a share of the mean, so that none is nothing."""


def products_of(rows: Floats, vectors: Floats) -> Floats:
    """``rows @ vectors.T``, of ``(rows, columns)`` and ``(vectors, columns)``.

    >>> products_of(np.array([[1, 2], [3, 4]], np.float32), np.array([[1, 1]], np.float32)).tolist()
    [[3.0], [7.0]]
    """
    count, columns = rows.shape
    places = panel_places(len(vectors))
    rows, panels = np.ascontiguousarray(rows, np.float32), float_panels(vectors)  # which live until the call is over
    out = np.empty((count, places), np.float32)
    call(
        kernels().float_products,
        address(rows, np.float32, count, columns), columns, count,
        address(panels, np.float32, places * columns), places, writable(out, np.float32, count, places),
    )  # fmt: skip
    return out[:, : len(vectors)]


def main_directions(spread: Floats) -> Floats:
    """(columns, columns), orthogonal: about the eigenvectors of a symmetric matrix, that of the largest value first."""
    columns = len(spread)
    least = LEAST_SHARE * max(float(np.trace(spread)) / max(1, columns), 1e-12)
    panels = float_panels((spread + least * np.eye(columns)).astype(np.float32))
    basis = np.zeros((columns, panel_places(columns)), np.float32)
    np.fill_diagonal(basis, 1)
    order = np.argsort(-np.diagonal(spread), kind="stable")
    basis[:, :columns] = basis[order, :columns]
    call(
        kernels().turn_basis,
        address(panels, np.float32, panel_places(columns) * columns), columns, ROUNDS,
        writable(basis, np.float32, columns, -1),
    )  # fmt: skip
    return np.ascontiguousarray(basis[:, :columns].T)
