"""Bounds of all queries on all videos, compiled by numba: bytes times bytes, sixteen queries with four rows at a time.

Where thousands of queries meet a million clips, arithmetic decides. A row's codes are unsigned bytes and a query's
signed ones of seven bits, so that ``vpmaddubsw`` multiplies 32 pairs at once and its sums of two never overflow
(2 · 255 · 63 < 2^15). Four columns of a row are spread over a register and meet the same columns of eight queries,
which lie side by side in a *panel*; so nothing is added up across a register, and the largest sum of a video's rows is
taken where the sums are. One thread makes 180 billion operations a second of it, a product of float32 matrices 78.

Importing this module fails with an ImportError on processors without AVX2.
"""

# mypy: disable-error-code="call-arg,unreachable,no-untyped-call,import-untyped,untyped-decorator"

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import binding
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from momentseek.library.scan.blocks import read_only

if not binding.get_host_cpu_features().get("avx2"):
    raise ImportError("the kernel for panels of queries needs AVX2")

QUERIES_PER_PANEL = 16
COLUMN_STEP = 8
"""Codes have a multiple of so many columns; what is left over is filled up with ``ZERO``."""
ROWS_AT_ONCE = 4
ZERO = 128
"""The code of 0 in a row."""
MOST = 63
"""The largest code of a query."""


@intrinsic
def _best_sums(
    typing: Any, codes: Any, place: Any, rows: Any, dim: Any, panels: Any, panel: Any, best: Any
) -> Any:  # fmt: skip
    """The largest of the dot products of ``rows`` rows, the first at ``place``, with each query of a panel."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        def data(position: int) -> Any:
            return context.make_array(signature.args[position])(context, builder, arguments[position]).data

        _, place, rows, dim, _, panel, _ = arguments
        bytes32, shorts, sums = (ir.VectorType(ir.IntType(bits), count) for bits, count in ((8, 32), (16, 16), (32, 8)))

        def number(value: int) -> Any:
            return ir.Constant(dim.type, value)

        def function(name: str, result: Any, kind: Any) -> Any:
            return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [kind, kind]), name)

        products = function("llvm.x86.avx2.pmadd.ub.sw", shorts, bytes32)
        pairs = function("llvm.x86.avx2.pmadd.wd", sums, shorts)
        larger = function("llvm.smax.v8i32", sums, sums)
        ones, nothing = ir.Constant(shorts, [1] * 16), ir.Constant(sums, [0] * 8)
        halves = range(QUERIES_PER_PANEL // 8)
        most = [cgutils.alloca_once(builder, sums) for _ in halves]
        totals = [[cgutils.alloca_once(builder, sums) for _ in halves] for _ in range(ROWS_AT_ONCE)]
        for slot in most:
            builder.store(ir.Constant(sums, [-(2**31)] * 8), slot)
        last = builder.sub(rows, number(1))

        def add_column(column: Any, begins: list[Any]) -> None:
            base = builder.add(panel, builder.mul(column, number(QUERIES_PER_PANEL)))
            asked = []
            for half in halves:
                address = builder.gep(data(4), [builder.add(base, number(32 * half))])
                asked.append(builder.load(builder.bitcast(address, bytes32.as_pointer()), align=1))
            for begin, slots in zip(begins, totals, strict=True):
                address = builder.gep(data(0), [builder.add(begin, column)])
                four = builder.load(builder.bitcast(address, ir.IntType(32).as_pointer()), align=1)
                lone = builder.insert_element(ir.Constant(sums, ir.Undefined), four, ir.Constant(ir.IntType(32), 0))
                everywhere = builder.bitcast(builder.shuffle_vector(lone, lone, nothing), bytes32)
                for half, slot in zip(asked, slots, strict=True):
                    each = builder.call(pairs, [builder.call(products, [everywhere, half]), ones])
                    builder.store(builder.add(builder.load(slot), each), slot)

        with cgutils.for_range_slice(builder, number(0), rows, number(ROWS_AT_ONCE)) as (row, _):
            begins = []
            for n in range(ROWS_AT_ONCE):  # past the last row it is multiplied again, which changes no maximum
                here = builder.add(row, number(n))
                here = builder.select(builder.icmp_signed("<", here, last), here, last)
                begins.append(builder.add(place, builder.mul(here, dim)))
                for slot in totals[n]:
                    builder.store(nothing, slot)
            with cgutils.for_range_slice(builder, number(0), dim, number(COLUMN_STEP)) as (column, _):
                for first in range(0, COLUMN_STEP, 4):
                    add_column(builder.add(column, number(first)), begins)
            for half, slot in enumerate(most):
                largest = builder.load(slot)
                for slots in totals:
                    largest = builder.call(larger, [largest, builder.load(slots[half])])
                builder.store(largest, slot)
        for half, slot in enumerate(most):
            address = builder.gep(data(6), [number(8 * half)])
            builder.store(builder.load(slot), builder.bitcast(address, sums.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(codes, types.intp, types.intp, types.intp, panels, types.intp, best), generate


_PLACES, _NUMBERS = read_only(types.int64, 1), read_only(types.float32, 2)


@nb.njit(
    types.void(
        read_only(types.uint8, 1), _PLACES, _NUMBERS, read_only(types.int8, 1), _NUMBERS, types.float32[:, ::1],
        types.intp, types.intp,
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def panel_bounds(  # pragma: no cover  (compiled)
    codes: Any, starts: Any, sizes: Any, panels: Any, asked: Any, out: Any, low: int, high: int
) -> None:
    """Add to ``out`` (queries, videos), for the videos ``low`` to ``high``, how much their best rows add at most.

    ``sizes`` (videos, 1 + terms) has the scale of a video's codes and then lengths; ``asked`` (2 + terms, queries) has
    the step of a query's codes, their sum, and then lengths. What is added is the scaled best sum, and the products of
    the lengths; minus infinity for a video without rows.
    """
    queries, terms = asked.shape[1], sizes.shape[1] - 1
    dim = codes.size // starts[-1]
    best = np.empty(QUERIES_PER_PANEL, np.int32)
    for video in range(low, high):
        rows = starts[video + 1] - starts[video]
        for first in range(0, queries, QUERIES_PER_PANEL):
            _best_sums(codes, starts[video] * dim, rows, dim, panels, first * dim, best)
            for n in range(min(QUERIES_PER_PANEL, queries - first)):
                q = first + n
                bound = np.float32(best[n] - ZERO * np.int32(asked[1, q])) * asked[0, q] * sizes[video, 0]
                for term in range(terms):
                    bound += sizes[video, 1 + term] * asked[2 + term, q]
                out[q, video] += bound if rows else np.float32(-np.inf)


@nb.njit(
    types.void(types.float32[:, ::1], _PLACES, types.float32[:, ::1], types.float32[::1]),
    nogil=True,
    cache=True,
    fastmath={"reassoc", "contract"},
)
def centre_videos(rows: Any, starts: Any, means: Any, squares: Any) -> None:  # pragma: no cover  (compiled)
    """Take the mean of a video's rows off each of them, and keep it; ``squares`` get the rows' squared lengths then."""
    columns = rows.shape[1]
    for video in range(starts.size - 1):
        begin, end = starts[video], starts[video + 1]
        mean = means[video]
        mean[:] = 0
        for i in range(begin, end):
            for j in range(columns):
                mean[j] += rows[i, j]
        share = np.float32(1 / max(1, end - begin))
        for j in range(columns):
            mean[j] *= share
        for i in range(begin, end):
            square = np.float32(0)
            for j in range(columns):
                rows[i, j] -= mean[j]
                square += rows[i, j] * rows[i, j]
            squares[i] = square


@nb.njit(
    types.void(_NUMBERS, read_only(types.float32, 1), _PLACES, types.uint8[:, ::1], types.float32[:, ::1]),
    nogil=True,
    cache=True,
    fastmath={"reassoc", "contract"},
)
def quantise_videos(  # pragma: no cover  (compiled)
    rows: Any, squares: Any, starts: Any, codes: Any, sizes: Any
) -> None:
    """Codes of rows with one scale per video, and the lengths that its bounds need.

    ``squares`` are the squared lengths of the rows before columns were left out. ``sizes`` gets, per video, the scale
    and the largest lengths, over its rows, of what the codes miss, of the row itself, and of the columns left out.
    """
    columns = rows.shape[1]
    for video in range(starts.size - 1):
        most = np.float32(0)
        for i in range(starts[video], starts[video + 1]):
            for j in range(columns):
                most = max(most, abs(rows[i, j]))
        scale = most / np.float32(127)
        inverse = np.float32(0) if most == 0 else np.float32(127) / most
        missed, length, tail = np.float32(0), np.float32(0), np.float32(0)
        for i in range(starts[video], starts[video + 1]):
            error, square = np.float32(0), np.float32(0)
            for j in range(columns):
                value = rows[i, j]
                code = np.floor(value * inverse + np.float32(0.5))
                codes[i, j] = np.uint8(code + np.float32(ZERO))
                rest = value - code * scale
                error += rest * rest
                square += value * value
            for j in range(columns, codes.shape[1]):
                codes[i, j] = ZERO
            missed, length = max(missed, error), max(length, square)
            tail = max(tail, squares[i] - square)
        sizes[video, 0] = scale
        sizes[video, 1], sizes[video, 2] = np.sqrt(missed), np.sqrt(length)
        sizes[video, 3] = np.sqrt(tail)


@nb.njit(
    types.void(
        _NUMBERS, _PLACES, _NUMBERS, _PLACES, _PLACES, types.float32, types.float32[::1], types.intp, types.intp
    ),
    nogil=True,
    cache=True,
    fastmath={"reassoc", "contract"},
)  # fmt: skip
def add_pair_scores(  # pragma: no cover  (compiled)
    rows: Any, starts: Any, queries: Any, query: Any, video: Any, share: Any, out: Any, low: int, high: int
) -> None:
    """Add ``share`` of the largest dot product of a pair's query and video, for the pairs ``low`` to ``high``.

    Every product is added up in the same order, so equal rows score alike wherever they stand.
    """
    columns = rows.shape[1]
    for pair in range(low, high):
        asked = queries[query[pair]]
        best = np.float32(-np.inf)
        for i in range(starts[video[pair]], starts[video[pair] + 1]):
            row = rows[i]
            total = np.float32(0)
            for j in range(columns):
                total += row[j] * asked[j]
            best = max(best, total)
        out[pair] += share * best


def query_panels(codes: NDArray[np.int8]) -> NDArray[np.int8]:
    """Codes of queries ``(queries, columns)``, four columns of sixteen queries after another, filled up with zeros."""
    queries, columns = codes.shape
    full = -(-queries // QUERIES_PER_PANEL) * QUERIES_PER_PANEL, -(-columns // COLUMN_STEP) * COLUMN_STEP
    padded = np.zeros(full, np.int8)
    padded[:queries, :columns] = codes
    panels = padded.reshape(-1, QUERIES_PER_PANEL, full[1] // 4, 4).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(panels).reshape(-1)
