"""Load the compiled kernels once per process, with the argument types of each function.

Calls release the GIL. A kernel gets the numbers of rows and videos and reads nothing beyond them; the lengths and types
of arrays are checked here, before it gets their addresses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.native.build import library_path

SIGNATURES = {
    "set_wide": "n",
    "bounds_of_one": "aan ann a aaa ann",
    "bounds_of_many": "aan ann a anaa an nn",
    "add_bounds_of_best": "an ann anaa aan a an nn",
    "nearest_points": "aan an aa ann",
    "scores_of_one": "an ann a aann",
    "span_bounds_of_one": "aan ann a aaaa nn ann",
    "span_scores_of_one": "an ann a aa nn ann",
    "span_leads_of_one": "aaan ann aaaa a nn f ann",
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
    "stretches_of_height": "aaaan dd nddd dd aaana",
}
"""Argument types of each function: ``a`` an array's address, ``n`` an integer, ``f`` a float32, ``d`` a float64."""
ARGUMENTS = {"a": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float, "d": ctypes.c_double}
OUTSIDE, NO_MEMORY = 1, 2
IN_ORDER = 0x101
"""Numpy's flags of a C-contiguous, aligned array."""


@cache
def kernels() -> Any:
    """Return the library of kernels, or None if it is not built or cannot be loaded."""
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
    """Whether the kernels use this CPU's wide instructions (AVX2, FMA and F16C)."""
    library = kernels()
    return library is not None and bool(library.set_wide(1))


@contextmanager
def every_processor() -> Iterator[None]:
    """Use only kernels that run on every CPU of the platform, in the whole process; for tests."""
    kernels().set_wide(0)
    try:
        yield
    finally:
        kernels().set_wide(1)


def call(function: Any, *arguments: Any) -> None:
    """Call a kernel, and raise an exception for its error code."""
    state = function(*arguments)
    if state == OUTSIDE:
        raise IndexError("a position or an offset is outside its array")
    if state == NO_MEMORY:
        raise MemoryError("a kernel got no memory to work in")


def address(array: NDArray[Any], kind: Any, *shape: int) -> int:
    """Return an array's address after checking its type and shape; -1 stands for any length.

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
    """Return the address of an array that a kernel writes to."""
    if not array.flags.writeable:
        raise TypeError("a kernel cannot write to an array that is only to be read")
    return address(array, kind, *shape)


def float_copy(array: NDArray[Any]) -> NDArray[np.float32]:
    """Return a C-contiguous float32 copy of an array.

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
    """Return an array as C-contiguous float32, without a copy if it already is."""
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    return float_copy(array)


QUERIES_PER_PANEL = 16
"""Number of queries multiplied together, as in ``panels.c``."""


def query_panels(codes: NDArray[np.int16]) -> NDArray[np.int16]:
    """Arrange codes of queries ``(queries, columns)`` in panels: pairs of columns of sixteen queries, zero-padded.

    >>> query_panels(np.array([[1, 2, 3], [4, 5, 6]], np.int16)).reshape(2, 16, 2)[:, :2].tolist()
    [[[1, 2], [4, 5]], [[3, 0], [6, 0]]]
    """
    queries, columns = codes.shape
    padded = np.zeros((panel_places(queries), columns + columns % 2), np.int16)
    padded[:queries, :columns] = codes
    panels = padded.reshape(-1, QUERIES_PER_PANEL, padded.shape[1] // 2, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(panels).reshape(-1)


def float_panels(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Arrange vectors ``(vectors, columns)`` in panels: columns of sixteen vectors, zero-padded.

    >>> float_panels(np.array([[1, 2, 3], [4, 5, 6]], np.float32)).reshape(3, 16)[:, :3].tolist()
    [[1.0, 4.0, 0.0], [2.0, 5.0, 0.0], [3.0, 6.0, 0.0]]
    """
    count, columns = vectors.shape
    padded = np.zeros((panel_places(count), columns), np.float32)
    padded[:count] = vectors
    return np.ascontiguousarray(padded.reshape(-1, QUERIES_PER_PANEL, columns).transpose(0, 2, 1)).reshape(-1)


def panel_places(queries: int) -> int:
    """Return the number of queries rounded up to whole panels."""
    return -(-queries // QUERIES_PER_PANEL) * QUERIES_PER_PANEL


def pad_panel(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Pad one number per query with zeros to whole panels."""
    return np.concatenate([numbers, np.zeros(panel_places(len(numbers)) - len(numbers), np.float32)])


Floats = NDArray[np.float32]
ROUNDS = 6
"""Number of power iterations; directions whose variances differ by a factor of two are then separated to 1.6 %."""
MIN_SHARE = 1e-5
"""Variance added to every direction, as a share of the mean, so that none is zero."""


def products_of(rows: Floats, vectors: Floats) -> Floats:
    """Return ``rows @ vectors.T`` for ``(rows, columns)`` and ``(vectors, columns)``.

    >>> products_of(np.array([[1, 2], [3, 4]], np.float32), np.array([[1, 1]], np.float32)).tolist()
    [[3.0], [7.0]]
    """
    count, columns = rows.shape
    places = panel_places(len(vectors))
    rows, panels = np.ascontiguousarray(rows, np.float32), float_panels(vectors)  # must stay alive during the call
    out = np.empty((count, places), np.float32)
    call(
        kernels().float_products,
        address(rows, np.float32, count, columns), columns, count,
        address(panels, np.float32, places * columns), places, writable(out, np.float32, count, places),
    )  # fmt: skip
    return out[:, : len(vectors)]


def main_directions(spread: Floats) -> Floats:
    """Return approximate eigenvectors of a symmetric matrix, (columns, columns), the largest eigenvalue first."""
    columns = len(spread)
    minimum = MIN_SHARE * max(float(np.trace(spread)) / max(1, columns), 1e-12)
    panels = float_panels((spread + minimum * np.eye(columns)).astype(np.float32))
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
