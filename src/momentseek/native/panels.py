"""Queries in the order in which the kernels for many of them read: sixteen side by side, two columns at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

QUERIES_PER_PANEL = 16
"""Queries that are multiplied together, as in ``panels.c``."""


def query_panels(codes: NDArray[np.int16]) -> NDArray[np.int16]:
    """Codes of queries ``(queries, columns)``, two columns of sixteen queries after another, filled up with zeros.

    >>> query_panels(np.array([[1, 2, 3], [4, 5, 6]], np.int16)).reshape(2, 16, 2)[:, :2].tolist()
    [[[1, 2], [4, 5]], [[3, 0], [6, 0]]]
    """
    queries, columns = codes.shape
    padded = np.zeros((panel_places(queries), columns + columns % 2), np.int16)
    padded[:queries, :columns] = codes
    panels = padded.reshape(-1, QUERIES_PER_PANEL, padded.shape[1] // 2, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(panels).reshape(-1)


def float_panels(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors ``(vectors, columns)``, one column of sixteen of them after another, filled up with zeros.

    >>> float_panels(np.array([[1, 2, 3], [4, 5, 6]], np.float32)).reshape(3, 16)[:, :3].tolist()
    [[1.0, 4.0, 0.0], [2.0, 5.0, 0.0], [3.0, 6.0, 0.0]]
    """
    count, columns = vectors.shape
    padded = np.zeros((panel_places(count), columns), np.float32)
    padded[:count] = vectors
    return np.ascontiguousarray(padded.reshape(-1, QUERIES_PER_PANEL, columns).transpose(0, 2, 1)).reshape(-1)


def panel_places(queries: int) -> int:
    """How many queries the panels of so many have places for."""
    return -(-queries // QUERIES_PER_PANEL) * QUERIES_PER_PANEL


def pad_panel(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """One number per query, and zeros for the places left over in the last panel."""
    return np.concatenate([numbers, np.zeros(panel_places(len(numbers)) - len(numbers), np.float32)])
