"""Runs of consecutive clips: from a mask, and joined over small gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]


def runs(mask: NDArray[np.bool_]) -> tuple[Index, Index]:
    """First and last (exclusive) positions of the runs of true values.

    >>> runs(np.array([True, True, False, True]))
    (array([0, 3]), array([2, 4]))
    """
    steps = np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))
    return np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)


def bridged(first: Index, last: Index, gap: int) -> tuple[Index, Index]:
    """Runs with no more than ``gap`` positions between them made one.

    >>> bridged(np.array([0, 3, 9]), np.array([2, 4, 10]), gap=1)
    (array([0, 9]), array([ 4, 10]))
    """
    apart = first[1:] - last[:-1] > gap
    return first[np.concatenate(([True], apart))], last[np.concatenate((apart, [True]))]
