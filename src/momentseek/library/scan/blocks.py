"""Bounds for many queries at once, compiled by numba: two rows meet four queries while all of them are in registers.

A single query is bound by memory: each row is read once, and :mod:`compiled` keeps up with that. For a hundred queries
arithmetic decides, and a dot product at a time spends most of it on loading and adding up. Eight products together load
each number once for several of them and add up eight times as rarely; numba's own loops do not become that, so the
inner one is written in LLVM's terms here. The integers, and so the bounds, are those of the other kernels to the bit.
"""

# mypy: disable-error-code="call-arg,unreachable,no-untyped-call,import-untyped,untyped-decorator"

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

QUERIES_PER_BLOCK = 4
"""Queries that are multiplied together; with the two rows, as many sums as there are registers for."""
COLUMNS = 16
"""Columns multiplied at a time."""
ROWS_PER_TILE = 32
"""Rows that meet one block of queries after another while they are in the first cache."""


def read_only(kind: Any, axes: int) -> Any:
    """Numba's type of an array that is only read."""
    return types.Array(kind, axes, "C", readonly=True)


@intrinsic
def plus_product(typing: Any, total: Any, code: Any, weight: Any) -> Any:
    """``total + code * weight`` in 32 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = builder.sext(arguments[1], arguments[0].type), builder.sext(arguments[2], arguments[0].type)
        return builder.add(arguments[0], builder.mul(*wide))

    return types.int32(types.int32, types.int8, types.int16), generate


@intrinsic
def _multiply_block(typing: Any, codes: Any, one: Any, two: Any, asked: Any, query: Any, sums: Any) -> Any:
    """Dot products of the rows that start at ``one`` and ``two`` with four queries, but for the columns left over.

    Sums of neighbouring products are written as the pattern that LLVM turns into one instruction (``vpmaddwd`` on x86).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        def array(place: int) -> Any:
            return context.make_array(signature.args[place])(context, builder, arguments[place])

        dim = cgutils.unpack_tuple(builder, array(3).shape)[1]
        wide, half = ir.VectorType(ir.IntType(32), COLUMNS), ir.VectorType(ir.IntType(32), COLUMNS // 2)

        def constant(value: int) -> Any:
            return ir.Constant(dim.type, value)

        def numbers(base: Any, place: Any, bits: int) -> Any:
            narrow = ir.VectorType(ir.IntType(bits), COLUMNS)
            address = builder.bitcast(builder.gep(base, [place]), narrow.as_pointer())
            return builder.sext(builder.load(address, align=bits // 8), wide)

        every_other = [ir.Constant(half, list(range(first, COLUMNS, 2))) for first in (0, 1)]
        nothing = ir.Constant(half, [0] * (COLUMNS // 2))
        totals = [cgutils.alloca_once_value(builder, nothing) for _ in range(2 * QUERIES_PER_BLOCK)]
        begins = [builder.mul(builder.add(arguments[4], constant(n)), dim) for n in range(QUERIES_PER_BLOCK)]
        whole = builder.and_(dim, constant(-COLUMNS))
        with cgutils.for_range_slice(builder, constant(0), whole, constant(COLUMNS)) as (column, _):
            rows = [numbers(array(0).data, builder.add(arguments[n], column), 8) for n in (1, 2)]
            for n, begin in enumerate(begins):
                weights = numbers(array(3).data, builder.add(begin, column), 16)
                for r, row in enumerate(rows):
                    product, total = builder.mul(row, weights), totals[QUERIES_PER_BLOCK * r + n]
                    pairs = builder.add(*(builder.shuffle_vector(product, product, picks) for picks in every_other))
                    builder.store(builder.add(builder.load(total), pairs), total)
        kind = ir.FunctionType(ir.IntType(32), [half])
        add_up = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{COLUMNS // 2}i32")
        for n, total in enumerate(totals):
            builder.store(builder.call(add_up, [builder.load(total)]), builder.gep(array(5).data, [constant(n)]))
        return context.get_dummy_value()

    return types.void(codes, types.intp, types.intp, asked, types.intp, sums), generate


@nb.njit(
    types.void(
        read_only(types.int8, 1), read_only(types.float32, 1), read_only(types.int64, 1), read_only(types.int64, 1),
        read_only(types.int16, 2), read_only(types.float32, 1), read_only(types.float32, 1), types.float32[:, ::1],
        types.intp, types.intp,
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def block_bounds(  # pragma: no cover  (compiled)
    codes: Any, scales: Any, rows: Any, starts: Any, asked: Any, steps: Any, slacks: Any, out: Any, low: int, high: int
) -> None:
    """Bounds of the videos ``low`` to ``high`` for whole blocks of queries.

    ``rows`` lists all rows of the videos, or is empty for 0, 1, 2 and so on.
    """
    queries, dim = asked.shape
    listed = rows.size > 0
    best = np.empty(queries, np.float32)
    sums = np.empty(2 * QUERIES_PER_BLOCK, np.int32)
    for video in range(low, high):
        best[:] = -np.inf
        for first in range(starts[video], starts[video + 1], ROWS_PER_TILE):
            beyond = min(first + ROWS_PER_TILE, starts[video + 1])
            for query in range(0, queries, QUERIES_PER_BLOCK):
                for i in range(first, beyond, 2):
                    two = min(i + 1, beyond - 1)  # a last odd row is multiplied twice
                    pair = (rows[i], rows[two]) if listed else (i, two)
                    _multiply_block(codes, pair[0] * dim, pair[1] * dim, asked, query, sums)
                    for n in range(2 * QUERIES_PER_BLOCK):
                        row, q = pair[n // QUERIES_PER_BLOCK], query + n % QUERIES_PER_BLOCK
                        total = sums[n]
                        for j in range(dim - dim % COLUMNS, dim):
                            total = plus_product(total, codes[row * dim + j], asked[q, j])
                        bound = scales[row] * (np.float32(total) * steps[q] + slacks[q])
                        if bound > best[q]:
                            best[q] = bound
        for q in range(queries):
            out[q, video] = best[q]
