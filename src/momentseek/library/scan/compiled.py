"""The kernel in C (:mod:`momentseek.native`): each row is read once and fused with the maximum of its video.

One query is bound by memory: a row is asked for some places ahead, because a processor's own prefetching stops at each
page of 4 KB. For many queries arithmetic decides, and sixteen are multiplied together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import LibraryError
from momentseek.library.scan.kernels import NumpyKernel, Places, Scores, SegmentPart, video_count
from momentseek.library.scan.queries import QuantisedQueries
from momentseek.library.scan.threads import RowTask, share_rows
from momentseek.library.segments import Segment
from momentseek.native.library import address, call, kernels, writable
from momentseek.native.panels import pad_panel, panel_places, query_panels


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
    ready = *_codes(segment), *_videos(segment, places), *asked, writable(out, np.float32, 1, -1)
    return _task(segment, places, partial(kernels().bounds_of_one, *ready), queries)


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
    ready = *_codes(segment), *_videos(segment, places), *asked, *written
    return _task(segment, places, partial(kernels().bounds_of_many, *ready), panels, steps, slacks)


def _half_rows(segment: Segment, places: Places | None, query: NDArray[np.float32], out: Scores) -> RowTask:
    half = address(np.asarray(segment.half), np.float16, segment.rows, segment.dim)
    asked = address(query, np.float32, segment.dim), writable(out, np.float32, -1)
    ready = half, segment.dim, *_videos(segment, places), *asked
    return _task(segment, places, partial(kernels().scores_of_one, *ready), query)


def _codes(segment: Segment) -> tuple[int, int, int]:
    codes = address(np.asarray(segment.codes), np.int8, segment.rows, segment.dim)
    return codes, address(np.asarray(segment.scales), np.float32, segment.rows), segment.dim


def _videos(segment: Segment, places: Places | None) -> tuple[int, int, int, int | None]:
    """Where the videos' rows are, how many videos and rows there are, and which videos are meant."""
    offsets = address(np.asarray(segment.offsets), np.int64, -1)
    count = len(segment.offsets) - 1
    return offsets, count, segment.rows, None if places is None else address(places, np.int64, -1)


def _task(segment: Segment, places: Places | None, kernel: Callable[..., Any], *_kept: Any) -> RowTask:
    """The work on some of the videos, and where the rows of each begin if they are counted one after another.

    What a kernel has the address of is kept until the work is done: ``_kept``.
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
