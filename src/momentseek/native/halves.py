"""Float16 as float32: numpy widens one number after another, the kernel eight at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.native.library import address, call, kernels, writable


def float_copy(array: NDArray[Any]) -> NDArray[np.float32]:
    """A copy of an array in float32, row after row.

    >>> float_copy(np.array([1.5, -2], np.float16)).tolist()
    [1.5, -2.0]
    """
    if array.dtype != np.float16 or kernels() is None or not array.flags.c_contiguous:
        return np.array(array, np.float32, order="C")
    out = np.empty(array.shape, np.float32)
    call(
        kernels().widen_halves,
        address(array, np.float16, *array.shape), writable(out, np.float32, *array.shape), array.size,
    )  # fmt: skip
    return out


def as_floats(array: NDArray[Any]) -> NDArray[np.float32]:
    """An array in float32, row after row: itself, if it is that already."""
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    return float_copy(array)
