"""The kernel for large libraries, compiled by numba: each row is read once and fused with the maximum of its video.

Import this module only when there is enough to scan (:mod:`choice`): numba takes half a second to load, and some
seconds more the first time ever, when it compiles; the result is cached beside this file or in the user's cache folder.

What made it fast, measured on 2 million rows of 256 columns in a mapped file: int32 products, which become one
``vpmaddwd`` per 16 columns where numba's own int64 would take four times the instructions; and asking for rows 24
places ahead, because a processor's own prefetching stops at each 4 KB page. Threads are ours, not numba's ``prange``:
its portable threading layer must not be entered by two threads at once, and a server does that.
"""

# mypy: disable-error-code="call-arg,unreachable,no-untyped-call,import-untyped,untyped-decorator"

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numba as nb
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from momentseek.encoders.runtime import thread_count
from momentseek.library.scan.blocks import QUERIES_PER_BLOCK, block_bounds, plus_product, read_only
from momentseek.library.scan.kernels import Places, Scores, SegmentPart
from momentseek.library.scan.queries import QuantisedQueries
from momentseek.library.scan.threads import run_together
from momentseek.library.segments import Segment

PREFETCH_ROWS = 24
ROWS_PER_TILE = 64
"""Rows that meet one query after another while they are in the first cache."""
MIN_SHARED_PRODUCTS = 16_384
"""Below so many rows times queries a second thread costs more than it saves."""


@intrinsic
def _widen(typing: Any, bits: Any) -> Any:
    """The float32 of a float16 given by its bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


@intrinsic
def _fetch(typing: Any, array: Any, place: Any) -> Any:
    """Ask for the cache line that holds an element of a flat array, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(data, [arguments[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


_CODES, _HALVES = read_only(types.int8, 1), read_only(types.uint16, 1)
_NUMBERS, _PLACES = read_only(types.float32, 1), read_only(types.int64, 1)


@nb.njit(types.int32(_CODES, read_only(types.int16, 1)), nogil=True, cache=True)
def _dot(codes: Any, weights: Any) -> Any:  # pragma: no cover  (compiled)
    total = np.int32(0)
    for j in range(weights.size):
        total = plus_product(total, codes[j], weights[j])
    return total


@nb.njit(
    types.void(
        _CODES, _NUMBERS, _PLACES, _PLACES, read_only(types.int16, 2), _NUMBERS, _NUMBERS, types.float32[:, ::1],
        types.intp, types.intp,
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def _bounds(  # pragma: no cover  (compiled)
    codes: Any, scales: Any, rows: Any, starts: Any, asked: Any, steps: Any, slacks: Any, out: Any, low: int, high: int
) -> None:
    """Bounds of the videos ``low`` to ``high``; ``rows`` lists all their rows, or is empty for 0, 1, 2 and so on."""
    queries, dim = asked.shape
    listed = rows.size > 0
    last = starts[-1] - 1
    best = np.empty(queries, np.float32)
    for video in range(low, high):
        best[:] = -np.inf
        for first in range(starts[video], starts[video + 1], ROWS_PER_TILE):
            beyond = min(first + ROWS_PER_TILE, starts[video + 1])
            for q in range(queries):
                for i in range(first, beyond):
                    row = rows[i] if listed else i
                    if q == 0:
                        ahead = min(i + PREFETCH_ROWS, last)
                        place = (rows[ahead] if listed else ahead) * dim
                        for j in range(0, dim, 64):
                            _fetch(codes, place + j)
                    total = _dot(codes[row * dim : (row + 1) * dim], asked[q])
                    bound = scales[row] * (np.float32(total) * steps[q] + slacks[q])
                    if bound > best[q]:
                        best[q] = bound
        for q in range(queries):
            out[q, video] = best[q]


@nb.njit(
    types.void(_HALVES, _PLACES, _PLACES, _NUMBERS, types.float32[::1], types.intp, types.intp),
    nogil=True,
    cache=True,
    fastmath={"reassoc", "contract"},
)
def _scores(  # pragma: no cover  (compiled)
    halves: Any, rows: Any, starts: Any, query: Any, out: Any, low: int, high: int
) -> None:
    """Exact scores of the videos ``low`` to ``high``; every row is added up in the same order."""
    dim = query.size
    last = starts[-1] - 1
    for video in range(low, high):
        best = np.float32(-np.inf)
        for i in range(starts[video], starts[video + 1]):
            place = rows[min(i + PREFETCH_ROWS, last)] * dim
            for j in range(0, dim, 32):
                _fetch(halves, place + j)
            half = halves[rows[i] * dim : (rows[i] + 1) * dim]
            total = np.float32(0)
            for j in range(dim):
                total += _widen(half[j]) * query[j]
            if total > best and total < np.inf:
                best = total
        out[video] = best


class CompiledKernel:
    """The kernel compiled by numba; see :class:`momentseek.library.scan.kernels.Kernel`."""

    name = "numba"

    def bounds(self, parts: Sequence[SegmentPart], queries: QuantisedQueries) -> Scores:
        """Upper bounds of the videos' scores, ``(queries, videos)``; -inf without a finite row."""
        listings = [list_rows(*part) for part in parts]
        blocks = len(queries) - len(queries) % QUERIES_PER_BLOCK
        shares = [(block_bounds, slice(0, blocks)), (_bounds, slice(blocks, len(queries)))]
        results: list[Scores] = []
        tasks: list[KernelTask] = []
        for (segment, _), (rows, starts) in zip(parts, listings, strict=True):
            out = np.empty((len(queries), len(starts) - 1), np.float32)
            codes, scales = np.asarray(segment.codes).reshape(-1), np.asarray(segment.scales)
            for kernel, those in shares:
                if those.start < those.stop:
                    ready = np.ascontiguousarray(queries.codes[those]), queries.steps[those], queries.slacks[those]
                    tasks.append((partial(kernel, codes, scales, rows, starts, *ready, out[those]), starts))
            results.append(out)
        share_tasks(tasks, len(queries))
        return np.concatenate(results, axis=1) if len(results) > 1 else results[0]

    def scores(self, parts: Sequence[SegmentPart], query: NDArray[np.float32]) -> Scores:
        """The largest dot product of each video's float16 rows with a query, ``(videos,)``, in float32."""
        results: list[Scores] = []
        tasks: list[KernelTask] = []
        for segment, places in parts:
            rows, starts = list_rows(segment, np.arange(len(segment.ids)) if places is None else places)
            out = np.full(len(starts) - 1, -np.inf, np.float32)
            halves = np.asarray(segment.half).reshape(-1).view(np.uint16)
            tasks.append((partial(_scores, halves, rows, starts, query, out), starts))
            results.append(out)
        share_tasks(tasks, 1)
        return np.concatenate(results)


KernelTask = tuple[Callable[[int, int], None], NDArray[np.int64]]
"""A function of the first and last video, and where each video's rows start."""


def list_rows(segment: Segment, places: Places | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of some videos one after another, and where each video's start; no rows are listed if all are meant."""
    offsets = np.asarray(segment.offsets)
    if places is None:
        return np.zeros(0, np.int64), offsets
    begins = offsets[places]
    lengths = offsets[places + 1] - begins
    starts = np.zeros(len(places) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return np.repeat(begins - starts[:-1], lengths) + np.arange(starts[-1]), starts


def share_tasks(tasks: Sequence[KernelTask], queries: int) -> None:
    """Do all tasks, cut into parts of about equally many rows and given to threads when there are enough of them."""
    threads = thread_count()
    rows = sum(int(starts[-1]) for _, starts in tasks)
    if rows * queries < MIN_SHARED_PRODUCTS or threads == 1:
        for work, starts in tasks:
            work(0, len(starts) - 1)
        return
    size = rows / (2 * threads if rows < 1 << 18 else 8 * threads)
    parts: list[Callable[[], None]] = []
    for work, starts in tasks:
        cuts = np.searchsorted(starts, np.arange(size, starts[-1] - size / 2, size))
        edges = [0, *cuts.tolist(), len(starts) - 1]
        parts += [partial(work, low, high) for low, high in pairwise(edges) if low < high]
    run_together(parts)
