"""What a kernel must do, and the one that needs only numpy.

All kernels give the same integers: a sum of int8 × int16 products is exact in int32, and numpy's float32 matrix product
is exact too once the int16 codes are split into two bytes (``1024 × 128 × 128 = 2**24``), so bounds agree to the last
bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.queries import QuantisedQueries
from momentseek.library.segments import Segment

ROWS_PER_BLOCK = 65_536
"""Rows reduced to videos at a time."""
NUMBERS_PER_TILE = 1 << 17
"""Numbers converted to float32 at a time: half a megabyte, which stays in a processor's second cache."""
MAX_EXACT_COLUMNS = 1024

Places = NDArray[np.int64]
Scores = NDArray[np.float32]


SegmentPart = tuple[Segment, "Places | None"]
"""A segment and the places of the videos in it to look at; None stands for all of them."""


class Kernel(Protocol):
    """Computes bounds from int8 codes and scores from float16 rows for the videos of some parts, part after part."""

    name: str

    def bounds(self, parts: Sequence[SegmentPart], queries: QuantisedQueries) -> Scores:
        """Upper bounds of the videos' scores (see :mod:`queries`), ``(queries, videos)``; -inf without a finite row."""
        ...

    def scores(self, parts: Sequence[SegmentPart], query: NDArray[np.float32]) -> Scores:
        """The largest dot product of each video's float16 rows with a query, ``(videos,)``, in float32."""
        ...


class NumpyKernel:
    """The kernel that is always there: numpy multiplies blocks of rows and takes the maximum per video."""

    name = "numpy"

    def bounds(self, parts: Sequence[SegmentPart], queries: QuantisedQueries) -> Scores:
        """Upper bounds of the videos' scores, ``(queries, videos)``; -inf without a finite row."""
        return np.concatenate([self._bounds(*part, queries) for part in parts], axis=1)

    def scores(self, parts: Sequence[SegmentPart], query: NDArray[np.float32]) -> Scores:
        """The largest dot product of each video's float16 rows with a query, ``(videos,)``, in float32."""
        return np.concatenate([self._scores(*part, query) for part in parts])

    def _bounds(self, segment: Segment, places: Places | None, queries: QuantisedQueries) -> Scores:
        high, low = split_bytes(queries.codes)
        weights = np.ascontiguousarray(np.concatenate([high, low]).T.astype(np.float32))
        codes, scales = np.asarray(segment.codes), np.asarray(segment.scales)
        out = np.full((len(queries), video_count(segment, places)), -np.inf, np.float32)
        for first, _, rows, starts, filled in cut_blocks(
            segment, places, max(1, ROWS_PER_BLOCK // (1 + len(queries) // 4))
        ):
            sums = integer_product(codes[rows], weights)
            with np.errstate(invalid="ignore", over="ignore"):
                bound = scales[rows][:, None] * (sums.astype(np.float32) * queries.steps + queries.slacks)
            bound[np.isnan(bound)] = -np.inf
            out[:, first + filled] = np.maximum.reduceat(bound, starts, axis=0).T
        return out

    def _scores(self, segment: Segment, places: Places | None, query: NDArray[np.float32]) -> Scores:
        half = np.asarray(segment.half)
        out = np.full(video_count(segment, places), -np.inf, np.float32)
        for first, _, rows, starts, filled in cut_blocks(segment, places, ROWS_PER_BLOCK):
            out[first + filled] = np.maximum.reduceat(dot_products(half[rows], query), starts)
        return out


def video_count(segment: Segment, places: Places | None) -> int:
    """Number of videos of a part of a segment."""
    return len(segment.ids) if places is None else len(places)


def split_bytes(codes: NDArray[np.int16]) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """High and low bytes with ``codes == 256 * high + low``, both within ±128.

    >>> [part.tolist() for part in split_bytes(np.array([300, -300, 128], np.int16))]
    [[1, -1, 1], [44, -44, -128]]
    """
    low = ((codes.astype(np.int32) + 128) & 255) - 128
    return ((codes - low) >> 8).astype(np.int16), low.astype(np.int16)


def integer_product(codes: NDArray[np.int8], weights: NDArray[np.float32]) -> NDArray[np.int32]:
    """``codes @ (256 * high + low)`` for ``weights`` of the columns high, then the columns low; exact."""
    rows, dim = codes.shape
    queries = weights.shape[1] // 2
    total = np.empty((rows, queries), np.int32)
    tile = max(64, NUMBERS_PER_TILE // max(dim, 1))
    for top in range(0, rows, tile):
        wide = codes[top : top + tile].astype(np.float32)
        sums = np.zeros((len(wide), 2 * queries), np.int32)
        for start in range(0, dim, MAX_EXACT_COLUMNS):
            part = slice(start, start + MAX_EXACT_COLUMNS)
            sums += (wide[:, part] @ weights[part]).astype(np.int32)
        total[top : top + tile] = 256 * sums[:, :queries] + sums[:, queries:]
    return total


def dot_products(half: NDArray[np.float16], query: NDArray[np.float32]) -> Scores:
    """Dot product of each row with a query; -inf for a row that is not finite.

    ``einsum`` adds every row up in the same order, so equal rows get equal scores wherever they stand.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        out = np.einsum("rd,d->r", half.astype(np.float32), query)
    out[~np.isfinite(out)] = -np.inf
    return np.asarray(out, np.float32)


Block = tuple[int, int, "slice | NDArray[np.int64]", NDArray[np.int64], NDArray[np.int64]]


def cut_blocks(segment: Segment, places: Places | None, size: int) -> Iterator[Block]:
    """Cut videos into blocks of about ``size`` rows.

    Yields the first and last video, their rows, the place in the block where each video's rows start, and which of the
    block's videos these are: videos with no rows have no start.
    """
    offsets = np.asarray(segment.offsets)
    begins, ends = (offsets[:-1], offsets[1:]) if places is None else (offsets[places], offsets[places + 1])
    lengths = ends - begins
    total = np.concatenate([[0], np.cumsum(lengths)])
    first = 0
    while first < len(lengths):
        last = max(first + 1, int(np.searchsorted(total, total[first] + size, side="right")) - 1)
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
