"""The compiled kernels in this process: loaded once, each function with the types of what it takes.

Calls let other threads of Python run. A kernel is told how many rows and videos there are and reads none beyond; that
arrays are as long and of the kind that it takes them for is checked here, before it gets their addresses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.native.build import library_path

SIGNATURES = {
    "set_wide": "n",
    "bounds_of_one": "aan ann a aaa ann",
    "bounds_of_many": "aan ann a anaa an nn",
    "add_bounds_of_best": "an ann anaa aan a an nn",
    "nearest_points": "aan an aa ann",
    "scores_of_one": "an ann a aann",
    "widen_halves": "aan",
    "pool_scenes": "aan ann aaa nnff nn",
    "encode_videos": "an ann anf aaa",
    "turn_basis": "ann a",
    "float_products": "ann an a",
    "add_pair_scores": "an ann an aan fa",
    "add_curves": "aan ann an aan fan",
    "spans_of_curves": "ann aa an nnn ann aaa a",
    "overlapping_pairs": "aaan aan aaaaa nn aaana",
    "sum_matched_gains": "aaan dnn aan aan ann an",
    "sum_best_gains": "an an ann a",
    "take_in_turn": "aan an an",
    "train_pairs": "ann an nn",
    "encode_pairs": "ann aa",
    "list_near": "an aaann an aanan an ddd n aaaa",
    "videos_of_means": "aaann an aaa aaa",
    "rank_videos": "aann aannnd aaaaa aaaaa",
    "clear_changes": "annn ddd a",
    "stretches_of_height": "an an dd nddd dd aana",
}
"""Each function's arguments: ``a`` an array's address, ``n`` a whole number, ``f`` and ``d`` a float32 and
a float64."""
ARGUMENTS = {"a": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float, "d": ctypes.c_double}
OUTSIDE, NO_MEMORY = 1, 2
IN_ORDER = 0x101
"""Numpy's flags of an array whose numbers lie row after row and where the processor wants them."""


@cache
def kernels() -> Any:
    """The library of kernels, or None where it is not built or cannot be loaded."""
    try:
        library = ctypes.CDLL(str(library_path()))
        for name, kinds in SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes = [ARGUMENTS[kind] for kind in kinds.replace(" ", "")]
            function.restype = ctypes.c_int64
    except (OSError, AttributeError):  # not built, or for another machine
        return None
    return library


def is_wide() -> bool:
    """Whether the kernels use what this processor has beyond the least of its platform (AVX2, FMA and F16C)."""
    library = kernels()
    return library is not None and bool(library.set_wide(1))


@contextmanager
def every_processor() -> Iterator[None]:
    """Use the kernels that run on every processor of the platform, for tests; for the whole process."""
    kernels().set_wide(0)
    try:
        yield
    finally:
        kernels().set_wide(1)


def call(function: Any, *arguments: Any) -> None:
    """Call a kernel, and raise what it says went wrong."""
    state = function(*arguments)
    if state == OUTSIDE:
        raise IndexError("a place or an offset lies outside the array it speaks of")
    if state == NO_MEMORY:
        raise MemoryError("a kernel got no memory to work in")


def address(array: NDArray[Any], kind: Any, *shape: int) -> int:
    """Where an array begins, after checking that it is what a kernel takes it for; -1 stands for any length.

    >>> address(np.zeros(3, np.int8), np.int16)
    Traceback (most recent call last):
        ...
    TypeError: a kernel got an array of int8 (3,), strides (1,); it takes int16 (), row after row and aligned
    """
    fits = array.shape == shape or (
        len(shape) == array.ndim and all(n in (-1, m) for n, m in zip(shape, array.shape, strict=True))
    )
    if array.dtype != kind or not fits or array.flags.num & IN_ORDER != IN_ORDER:
        raise TypeError(
            f"a kernel got an array of {array.dtype} {array.shape}, strides {array.strides}; it takes "
            f"{np.dtype(kind)} {shape}, row after row and aligned"
        )
    return int(array.__array_interface__["data"][0])


def writable(array: NDArray[Any], kind: Any, *shape: int) -> int:
    """Where an array begins that a kernel writes to."""
    if not array.flags.writeable:
        raise TypeError("a kernel cannot write to an array that is only to be read")
    return address(array, kind, *shape)
