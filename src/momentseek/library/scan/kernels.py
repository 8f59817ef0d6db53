"""What a kernel must do, and the one that needs only numpy.

All kernels give the same integers: a sum of int8 × int16 products is exact in int32, and numpy's float32 matrix product
is exact too once the int16 codes are split into two bytes (``1024 × 128 × 128 = 2**24``), so bounds agree to the last
bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.asked import Asked
from momentseek.library.segments import Segment

BLOCK = 8192
"""Rows converted to float32 at a time: 8 MB at 256 columns, about what a cache holds."""
EXACT_COLUMNS = 1024

Places = NDArray[np.int64]
Scores = NDArray[np.float32]


class Kernel(Protocol):
    """Bounds from int8 codes, and scores from float16 rows, of some videos of a segment (all if ``places`` is None)."""

    name: str

    def bounds(self, segment: Segment, places: Places | None, queries: Asked) -> Scores:
        """``(queries, videos)``: each video's score or a little more (see :mod:`asked`), -inf without a finite row."""
        ...

    def scores(self, segment: Segment, places: Places, query: NDArray[np.float32]) -> Scores:
        """``(videos,)``: the largest dot product of a float16 row with the query, in float32."""
        ...


class NumpyKernel:
    """Blocks of rows, one matrix product each, and a maximum per video."""

    name = "numpy"

    def bounds(self, segment: Segment, places: Places | None, queries: Asked) -> Scores:
        """See :class:`Kernel`."""
        high, low = halves(queries.codes)
        weights = np.ascontiguousarray(np.concatenate([high, low]).T.astype(np.float32))
        codes, scales = np.asarray(segment.codes), np.asarray(segment.scales)
        count = len(segment.ids) if places is None else len(places)
        out = np.full((len(queries), count), -np.inf, np.float32)
        for first, last, rows, starts, filled in blocks(segment, places):
            sums = integer_product(codes[rows], weights)
            with np.errstate(invalid="ignore", over="ignore"):
                bound = scales[rows][:, None] * (sums.astype(np.float32) * queries.steps + queries.slacks)
            bound[np.isnan(bound)] = -np.inf
            out[:, first:last][:, filled] = np.maximum.reduceat(bound, starts, axis=0).T
        return out

    def scores(self, segment: Segment, places: Places, query: NDArray[np.float32]) -> Scores:
        """See :class:`Kernel`."""
        half = np.asarray(segment.half)
        out = np.full(len(places), -np.inf, np.float32)
        for first, last, rows, starts, filled in blocks(segment, places):
            out[first:last][filled] = np.maximum.reduceat(dots(half[rows], query), starts)
        return out


def halves(codes: NDArray[np.int16]) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """High and low bytes with ``codes == 256 * high + low``, both within ±128.

    >>> [part.tolist() for part in halves(np.array([300, -300, 128], np.int16))]
    [[1, -1, 1], [44, -44, -128]]
    """
    low = ((codes.astype(np.int32) + 128) & 255) - 128
    return ((codes - low) >> 8).astype(np.int16), low.astype(np.int16)


def integer_product(codes: NDArray[np.int8], weights: NDArray[np.float32]) -> NDArray[np.int32]:
    """``codes @ (256 * high + low)`` for ``weights`` of the columns high, then the columns low; exact."""
    queries = weights.shape[1] // 2
    total = np.zeros((len(codes), queries), np.int32)
    for start in range(0, codes.shape[1], EXACT_COLUMNS):
        part = slice(start, start + EXACT_COLUMNS)
        sums = (codes[:, part].astype(np.float32) @ weights[part]).astype(np.int32)
        total += 256 * sums[:, :queries] + sums[:, queries:]
    return total


def dots(half: NDArray[np.float16], query: NDArray[np.float32]) -> Scores:
    """Dot product of each row with a query; -inf for a row that is not finite.

    ``einsum`` adds every row up in the same order, so equal rows get equal scores wherever they stand.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.einsum("rd,d->r", half.astype(np.float32), query)
    out[~np.isfinite(out)] = -np.inf
    return np.asarray(out, np.float32)


Block = tuple[int, int, "slice | NDArray[np.int64]", NDArray[np.int64], NDArray[np.int64]]


def blocks(segment: Segment, places: Places | None) -> Iterator[Block]:
    """Cut videos into blocks of about ``BLOCK`` rows.

    Yields the first and last video, their rows, the place in the block where each video's rows start, and which of the
    block's videos these are: videos with no rows have no start.
    """
    offsets = np.asarray(segment.offsets)
    begins, ends = (offsets[:-1], offsets[1:]) if places is None else (offsets[places], offsets[places + 1])
    lengths = ends - begins
    total = np.concatenate([[0], np.cumsum(lengths)])
    first = 0
    while first < len(lengths):
        last = max(first + 1, int(np.searchsorted(total, total[first] + BLOCK, side="right")) - 1)
        filled = np.flatnonzero(lengths[first:last])
        if len(filled):
            starts = (total[first:last] - total[first])[filled]
            if places is None:
                rows: slice | NDArray[np.int64] = slice(int(begins[first]), int(ends[last - 1]))
            else:
                shift = np.repeat(begins[first:last] - (total[first:last] - total[first]), lengths[first:last])
                rows = shift + np.arange(total[last] - total[first])
            yield first, last, rows, starts, filled
        first = last
