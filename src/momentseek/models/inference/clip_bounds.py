"""Upper bounds of how good the best clips of videos are for queries, from few and small numbers.

The clips of a video are alike, so its mean ``m`` is multiplied once and a clip gives the rest, ``x``; and what clips
differ in lies mostly in some tens of directions, so ``x`` is turned until these come first, and only those are kept.
With ``q`` a query and both cut into ``q1, q2`` and ``x1, x2``, Cauchy and Schwarz say

    q · (m + x) <= q · m + q1 · x1 + |q2| |x2| = q · m + q' · x'

where ``q' = (q1, |q2|)`` and ``x' = (x1, |x2|)``: the length of what is left out is one more column. These become whole
numbers, ``q' = t b + d`` and ``x' = s c + e`` with one scale ``s`` per video, and the same inequality says

    q' · x' <= t s (b · c) + |t b| |e| + |d| |x'|
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.library.scan.threads import run_together, share_rows
from momentseek.moments.arrays import IntArray
from momentseek.native.directions import products_of
from momentseek.native.halves import as_floats
from momentseek.native.library import address, call, kernels, writable
from momentseek.native.panels import float_panels, pad_panel, panel_places, query_panels

Floats = NDArray[np.float32]
QUERIES_TOGETHER = 256
"""Queries whose codes stay in the second cache while the videos pass by."""
ROWS_PER_BLOCK = 1 << 13
"""Clips that a thread codes at a time."""


@dataclass(frozen=True, eq=False)
class ClipCodes:
    """The clips of one modality as bytes, less their video's mean, with what bounds need beside them."""

    turn: Floats | None
    """(columns, ``width``): onto the first directions, and zeros; None for all columns as they are."""
    means: Floats
    """(videos, columns)."""
    codes: NDArray[np.int8]
    """(clips, ``width``), an even number."""
    sizes: Floats
    """(videos, 3): scale, and the largest |e| and |x'| of its clips."""


@dataclass(frozen=True, eq=False)
class QueryCodes:
    """Queries as whole numbers in panels, with what bounds need beside them; one place each, and some left over."""

    panels: NDArray[np.int16]
    steps: Floats
    lengths: Floats
    """(2, places): |t b| and |d|."""


def rounding(columns: int) -> float:
    """A bound on what sums of so many products in single precision may be off, as a share of the vectors' lengths."""
    return 2 * columns * 2.0**-23


def first_directions(turn: Floats, width: int) -> Floats | None:
    """(columns, ``width``): the first directions, mixed so that no column has more to hold than the others, and zeros.

    The zeros leave room for the length of the rest. None where all columns take no more.
    """
    if width >= len(turn):
        return None
    mixed = np.linalg.qr(np.random.default_rng(0).standard_normal((width - 1, width - 1)))[0]
    kept = products_of(turn[:, : width - 1], mixed.T.astype(np.float32))
    return np.ascontiguousarray(np.pad(kept, ((0, 0), (0, 1))))


def encode_clips(clips: NDArray[Any], offsets: IntArray, turn: Floats | None) -> ClipCodes:
    """The codes of all clips, block by block of videos."""
    columns = clips.shape[1]
    width = columns + columns % 2 if turn is None else turn.shape[1]
    codes = np.empty((len(clips), width), np.int8)
    means = np.empty((len(offsets) - 1, columns), np.float32)
    sizes = np.empty((len(offsets) - 1, 3), np.float32)
    panels = None if turn is None else float_panels(turn.T)

    def encode(low: int, high: int) -> None:
        rows = as_floats(clips[offsets[low] : offsets[high]])
        starts = offsets[low : high + 1] - offsets[low]
        call(
            kernels().encode_videos,
            address(rows, np.float32, -1, columns), columns,
            address(starts, np.int64, -1), high - low, len(rows),
            None if panels is None else address(panels, np.float32, panel_places(width) * columns),
            width, rounding(columns),
            writable(means[low:high], np.float32, high - low, columns),
            writable(codes[offsets[low] : offsets[high]], np.int8, len(rows), width),
            writable(sizes[low:high], np.float32, high - low, 3),
        )  # fmt: skip

    edges = [0]
    while edges[-1] < len(offsets) - 1:
        beyond = int(np.searchsorted(offsets, offsets[edges[-1]] + ROWS_PER_BLOCK, side="right")) - 1
        edges.append(max(edges[-1] + 1, beyond))
    run_together([partial(encode, low, high) for low, high in pairwise(edges)])
    return ClipCodes(turn, means, codes, sizes)


def bounds_of(queries: Sequence[Floats], codes: Sequence[ClipCodes], offsets: IntArray) -> Floats:
    """(queries, videos): what no score is above, the mean over modalities of the best clip."""
    share = np.float32(1 / len(queries))
    out = np.empty((len(queries[0]), len(offsets) - 1), np.float32)
    longest = [float((np.linalg.norm(c.means, axis=1) + c.sizes[:, 2]).max()) for c in codes]
    for begin in range(0, len(out), QUERIES_TOGETHER):
        rows = out[begin : begin + QUERIES_TOGETHER]
        asked = [every[begin : begin + QUERIES_TOGETHER] * share for every in queries]
        slack = sum(
            np.float32(rounding(a.shape[1]) * length) * np.linalg.norm(a, axis=1)
            for a, length in zip(asked, longest, strict=True)
        )
        first = np.asarray(slack)[:, None]
        works = [add_bounds(c, offsets, a, rows) for c, a in zip(codes, asked, strict=True)]

        def add(
            low: int,
            high: int,
            rows: Floats = rows,
            first: Floats = first,
            works: Sequence[Callable[[int, int], None]] = works,
        ) -> None:
            rows[:, low:high] = first  # new memory, which the system gives to each thread
            for work in works:
                work(low, high)

        share_rows([(add, offsets)], len(codes) * len(rows))
    return out


def add_bounds(coded: ClipCodes, offsets: IntArray, queries: Floats, out: Floats) -> Callable[[int, int], None]:
    """The work of adding one modality's part to bounds ``(queries, videos)``, from a first video to a last."""
    asked, wide = query_codes(queries, coded.turn), float_panels(queries)
    count, videos = out.shape
    rows, width = coded.codes.shape
    places, columns = panel_places(count), queries.shape[1]
    ready = (
        address(coded.codes, np.int8, rows, width), width,
        address(offsets, np.int64, videos + 1), videos, rows,
        address(asked.panels, np.int16, places * width), count,
        address(asked.steps, np.float32, places), address(asked.lengths, np.float32, 2, places),
        address(coded.means, np.float32, videos, columns), address(wide, np.float32, places * columns), columns,
        address(coded.sizes, np.float32, videos, 3), writable(out, np.float32, count, videos), videos,
    )  # fmt: skip

    def work(low: int, high: int, _kept: tuple[QueryCodes, Floats] = (asked, wide)) -> None:
        call(kernels().add_bounds_of_best, *ready, low, high)

    return work


def query_codes(queries: Floats, turn: Floats | None) -> QueryCodes:
    """The codes of queries, as wide as a sum over all columns in 32 bits allows."""
    if turn is None:
        first = np.pad(queries, ((0, 0), (0, queries.shape[1] % 2)))
    else:
        first = products_of(queries, turn.T)
        square = np.square(queries).sum(axis=1)
        left = np.maximum(square - np.square(first).sum(axis=1), 0)
        first[:, -1] = np.sqrt(left + np.float32(rounding(queries.shape[1])) * square)
    most = min(np.iinfo(np.int16).max, (2**31 - 1) // (128 * max(1, first.shape[1])))
    step = np.maximum(np.abs(first).max(axis=1) / np.float32(most), np.float32(1e-30))
    codes = np.rint(first / step[:, None])
    missed = np.linalg.norm(first - step[:, None] * codes, axis=1)
    lengths = [step * np.linalg.norm(codes, axis=1), missed]
    return QueryCodes(
        query_panels(codes.astype(np.int16)),
        pad_panel(step.astype(np.float32)),
        np.stack([pad_panel(x.astype(np.float32)) for x in lengths]),
    )
