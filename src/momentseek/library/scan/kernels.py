"""Kernels, which compute the scores of a scan: the protocol, one in numpy, and one in C.

All kernels give the same integers: a sum of int8 × int16 products is exact in int32, and numpy's float32 matrix product
is exact too once the int16 codes are split into two bytes (``1024 × 128 × 128 = 2**24``), so bounds agree to the last
bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.core.native.kernels import address, call, kernels, pad_panel, panel_places, query_panels, writable
from momentseek.library.scan.threads import RowTask, share_rows
from momentseek.library.segments import MAX_CODE, Segment

MAX_QUERY_CODE = np.iinfo(np.int16).max


@dataclass(frozen=True, eq=False)
class QuantisedQueries:
    """Queries as float32 and as int16 codes: ``vectors ~ codes * steps``."""

    vectors: NDArray[np.float32]
    codes: NDArray[np.int16]
    steps: NDArray[np.float32]
    slacks: NDArray[np.float32]
    floors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.vectors)

    def part(self, start: int, stop: int) -> QuantisedQueries:
        """The queries from ``start`` up to ``stop``."""
        keep = slice(start, stop)
        return QuantisedQueries(
            self.vectors[keep], self.codes[keep], self.steps[keep], self.slacks[keep], self.floors[keep]
        )


def quantise_queries(queries: NDArray[Any], dim: int) -> QuantisedQueries:
    """Codes for queries ``(q, dim)``; one vector ``(dim,)`` counts as one query.

    The codes are as wide as an int32 sum over all columns allows.

    >>> ready = quantise_queries(np.array([0.6, -0.8], np.float32), 2)
    >>> ready.codes.tolist(), bool(abs(ready.codes * ready.steps - ready.vectors).max() < 2e-5)
    ([[24575, -32767]], True)
    """
    vectors = np.atleast_2d(np.ascontiguousarray(queries, dtype=np.float32))
    if vectors.ndim != 2 or vectors.shape[1] != dim:
        raise MomentseekError(
            f"a query of {vectors.shape[-1]} columns cannot search vectors of {dim}; encode it by the library's encoder"
        )
    if not np.isfinite(vectors).all():
        raise MomentseekError("the query's vector is not finite; check the encoder")
    widest = min(MAX_QUERY_CODE, (2**31 - 1) // (128 * max(dim, 1)))
    steps = np.abs(vectors).max(axis=1, initial=0) / np.float32(widest)
    codes = np.rint(vectors / np.where(steps > 0, steps, 1)[:, None]).astype(np.int16)
    wide = vectors.astype(np.float64)
    missed = np.abs(wide - codes * steps[:, None].astype(np.float64)).sum(axis=1)
    size = np.abs(wide).sum(axis=1)
    slacks = (0.5 + MAX_CODE / 2048 + 1 / 256) * size + MAX_CODE * missed
    floors = size * 2.0**-24
    return QuantisedQueries(
        vectors, codes, steps.astype(np.float32), slacks.astype(np.float32), floors.astype(np.float32)
    )


ROWS_PER_BLOCK = 65_536
"""Rows reduced to videos at a time."""
NUMBERS_PER_TILE = 1 << 17
"""Numbers converted to float32 at a time: half a megabyte, which fits into a processor's L2 cache."""
MAX_EXACT_COLUMNS = 1024

Places = NDArray[np.int64]
Scores = NDArray[np.float32]


SegmentPart = tuple[Segment, "Places | None"]
"""A segment and the positions of the videos in it to scan; None means all of them."""


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
    """The kernel that is always available: numpy multiplies blocks of rows and takes the maximum per video."""

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

    ``einsum`` adds up every row in the same order, so equal rows get equal scores at any position.
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


class CompiledKernel:
    """The kernel in C; see :class:`momentseek.library.scan.kernels.Kernel`."""

    name = "native"

    def bounds(self, parts: Sequence[SegmentPart], queries: QuantisedQueries) -> Scores:
        """Upper bounds of the videos' scores, ``(queries, videos)``; -inf without a finite row."""
        outs = [np.empty((len(queries), video_count(*part)), np.float32) for part in parts]
        make = _one_query if len(queries) == 1 else _many_queries
        if len(queries):
            share_rows([make(*part, queries, out) for part, out in zip(parts, outs, strict=True)], len(queries))
        return np.concatenate(outs, axis=1) if len(outs) > 1 else outs[0]

    def scores(self, parts: Sequence[SegmentPart], query: NDArray[np.float32]) -> Scores:
        """The largest dot product of each video's float16 rows with a query, ``(videos,)``, in float32."""
        if any(segment.half.dtype != np.float16 for segment, _ in parts):  # vectors in memory need not be rounded
            return NumpyKernel().scores(parts, query)
        outs = [np.empty(video_count(*part), np.float32) for part in parts]
        share_rows([_half_rows(*part, query, out) for part, out in zip(parts, outs, strict=True)], 1)
        return np.concatenate(outs) if len(outs) > 1 else outs[0]


def _one_query(segment: Segment, places: Places | None, queries: QuantisedQueries, out: Scores) -> RowTask:
    asked = (
        address(queries.codes, np.int16, 1, segment.dim),
        address(queries.steps, np.float32, 1),
        address(queries.slacks, np.float32, 1),
    )
    ready = *code_addresses(segment), *video_addresses(segment, places), *asked, writable(out, np.float32, 1, -1)
    return row_task(segment, places, partial(kernels().bounds_of_one, *ready), queries)


def _many_queries(segment: Segment, places: Places | None, queries: QuantisedQueries, out: Scores) -> RowTask:
    room = panel_places(len(queries))
    panels = query_panels(queries.codes)
    steps, slacks = pad_panel(queries.steps), pad_panel(queries.slacks)
    asked = (
        address(panels, np.int16, room * (segment.dim + segment.dim % 2)),
        len(queries),
        address(steps, np.float32, room),
        address(slacks, np.float32, room),
    )
    written = writable(out, np.float32, len(queries), -1), out.shape[1]
    ready = *code_addresses(segment), *video_addresses(segment, places), *asked, *written
    return row_task(segment, places, partial(kernels().bounds_of_many, *ready), panels, steps, slacks)


def _half_rows(segment: Segment, places: Places | None, query: NDArray[np.float32], out: Scores) -> RowTask:
    half = address(np.asarray(segment.half), np.float16, segment.rows, segment.dim)
    asked = address(query, np.float32, segment.dim), writable(out, np.float32, -1)
    ready = half, segment.dim, *video_addresses(segment, places), *asked
    return row_task(segment, places, partial(kernels().scores_of_one, *ready), query)


def code_addresses(segment: Segment) -> tuple[int, int, int]:
    """The addresses of a segment's codes and scales, and its number of columns."""
    codes = address(np.asarray(segment.codes), np.int8, segment.rows, segment.dim)
    return codes, address(np.asarray(segment.scales), np.float32, segment.rows), segment.dim


def video_addresses(segment: Segment, places: Places | None) -> tuple[int, int, int, int | None]:
    """The address of the offsets, the numbers of videos and rows, and the address of the chosen positions."""
    offsets = address(np.asarray(segment.offsets), np.int64, -1)
    count = len(segment.offsets) - 1
    return offsets, count, segment.rows, None if places is None else address(places, np.int64, -1)


def row_task(segment: Segment, places: Places | None, kernel: Callable[..., Any], *_kept: Any) -> RowTask:
    """The work on some of the videos, and the offsets of their rows if these are counted consecutively.

    ``_kept`` keeps arrays alive whose addresses the kernel has, until the work is done.
    """

    def work(low: int, high: int, _kept: Any = (places, _kept)) -> None:
        try:
            call(kernel, low, high)
        except IndexError:
            raise LibraryError(
                f"segment {segment.name}: its table of rows is damaged; run: momentseek verify --repair"
            ) from None

    offsets = np.asarray(segment.offsets)
    if places is None:
        return work, offsets
    starts = np.zeros(len(places) + 1, np.int64)
    np.cumsum(offsets[places + 1] - offsets[places], out=starts[1:])
    return work, starts


KERNEL_VARIABLE = "MOMENTSEEK_KERNEL"
MIN_PLANNED_ROWS = 150_000
"""Number of rows from which a plan is noticeably quicker than the exact scan (a few milliseconds)."""


def best_kernel() -> Kernel:
    """The quickest available kernel, or the one that ``MOMENTSEEK_KERNEL`` names: ``native`` or ``numpy``."""
    wanted = os.environ.get(KERNEL_VARIABLE, "")
    if wanted not in ("", "native", "numpy"):
        raise MomentseekError(f"{KERNEL_VARIABLE} is {wanted!r}; it may be native or numpy, or not set at all")
    if wanted == "numpy":
        return NumpyKernel()
    if has_kernels():
        return CompiledKernel()
    if wanted == "native":
        raise MomentseekError(
            f"{KERNEL_VARIABLE} is native, but the compiled kernels are not built; build them: "
            "python -m momentseek.core.native.build"
        )
    return NumpyKernel()


def has_kernels() -> bool:
    """Whether the kernels in C are built and can be loaded."""

    return kernels() is not None
