"""Find the best videos by the mean of each modality's best clip: exactly, and faster than scoring every clip.

Every video gets an upper bound of its score, computed from a few small integers. The videos with the best bounds are
scored, and then every other video whose bound reaches the n-th best score.

The clips of a video are similar, so the product with their mean ``m`` is computed once, and each clip adds its
difference ``x`` from it. These differences lie mostly in some tens of directions, so ``x`` is rotated until these come
first, and only they are kept. Let ``q`` be a query, and split both into ``q1, q2`` and ``x1, x2``. By the inequality of
Cauchy and Schwarz,

    q · (m + x) <= q · m + q1 · x1 + |q2| |x2| = q · m + q' · x'

where ``q' = (q1, |q2|)`` and ``x' = (x1, |x2|)``: the norm of the omitted columns becomes one more column. These are
rounded to integers, ``q' = t b + d`` and ``x' = s c + e`` with one scale ``s`` per video, and by the same inequality

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

from momentseek.core.moments.arrays import IntArray
from momentseek.core.native.kernels import (
    address,
    as_floats,
    call,
    float_panels,
    is_wide,
    kernels,
    main_directions,
    pad_panel,
    panel_places,
    products_of,
    query_panels,
    writable,
)
from momentseek.library.scan.threads import run_together, share_rows

Floats = NDArray[np.float32]
QUERIES_TOGETHER = 256
"""Number of queries compared with the videos together, so that their codes fit in the L2 cache."""
ROWS_PER_BLOCK = 1 << 13
"""Number of clips that a thread encodes at a time."""
SAMPLE_VIDEOS, SAMPLE_DIRECTIONS = 256, 2048
WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384)
"""Possible numbers of columns of the bounds; the last column is the norm of all omitted ones."""
HELD_SHARE = 0.94
"""Minimum share of the clips' variance in the columns of bounds; with less, too many videos need scoring."""
MAX_BOUNDS = 1 << 26
"""Maximum number of bounds in memory (256 MB); more queries are answered in parts."""
MIN_PRODUCTS = 1 << 36
"""Minimum number of multiplications for which bounds pay: about two seconds of plain products on one thread."""
PAIRS_PER_TASK = 1 << 12
"""Number of pairs that a thread scores at a time."""
BOUNDS_PER_TASK = 1 << 20
"""Number of bounds that a thread selects from at a time."""


@dataclass(frozen=True, eq=False)
class LateVectors:
    """Vectors of queries ``(queries, columns)`` and of the clips of all videos ``(clips, columns)`` in one modality."""

    queries: Floats
    clips: NDArray[Any]


@dataclass(frozen=True, eq=False)
class ClipCodes:
    """The clips of one modality, minus their video's mean, as bytes, with the other values that bounds need."""

    turn: Floats | None
    """(columns, ``width``): the projection onto the first directions, and a column of zeros; None for no projection."""
    means: Floats
    """(videos, columns)."""
    codes: NDArray[np.int8]
    """(clips, ``width``), an even number."""
    sizes: Floats
    """(videos, 3): scale of a video, and the largest |e| and |x'| of its clips."""


@dataclass(frozen=True, eq=False)
class QueryCodes:
    """Queries as integers in padded panels, with the other values that bounds need."""

    panels: NDArray[np.int16]
    steps: Floats
    lengths: Floats
    """(2, places): |t b| and |d|."""


def rounding(columns: int) -> float:
    """A bound on the error of a dot product of ``columns`` columns in single precision, relative to the norms."""
    return 2 * columns * 2.0**-23


def first_directions(turn: Floats, width: int) -> Floats | None:
    """(columns, ``width``): the first directions, rotated so that all columns have similar variance, and zeros.

    The last column is zero, for the norm of the rest. None if ``width`` is not less than the number of columns.
    """
    if width >= len(turn):
        return None
    mixed = np.linalg.qr(np.random.default_rng(0).standard_normal((width - 1, width - 1)))[0]
    kept = products_of(turn[:, : width - 1], mixed.T.astype(np.float32))
    return np.ascontiguousarray(np.pad(kept, ((0, 0), (0, 1))))


def encode_clips(clips: NDArray[Any], offsets: IntArray, turn: Floats | None) -> ClipCodes:
    """Encode all clips as bytes, in blocks of videos."""
    columns = clips.shape[1]
    width = columns + columns % 2 if turn is None else turn.shape[1]
    codes = np.empty((len(clips), width), np.int8)
    means = np.empty((len(offsets) - 1, columns), np.float32)
    sizes = np.empty((len(offsets) - 1, 3), np.float32)
    panels = None if turn is None else float_panels(turn.T)

    def encode(low: int, high: int) -> None:
        rows = as_floats(clips[offsets[low] : offsets[high]])
        starts = offsets[low : high + 1] - offsets[low]
        given = (
            address(rows, np.float32, -1, columns), columns,
            address(starts, np.int64, -1), high - low, len(rows),
            None if panels is None else address(panels, np.float32, panel_places(width) * columns),
            width, rounding(columns),
            writable(means[low:high], np.float32, high - low, columns),
            writable(codes[offsets[low] : offsets[high]], np.int8, len(rows), width),
            writable(sizes[low:high], np.float32, high - low, 3),
        )  # fmt: skip
        call(kernels().encode_videos, *given)

    edges = [0]
    while edges[-1] < len(offsets) - 1:
        beyond = int(np.searchsorted(offsets, offsets[edges[-1]] + ROWS_PER_BLOCK, side="right")) - 1
        edges.append(max(edges[-1] + 1, beyond))
    run_together([partial(encode, low, high) for low, high in pairwise(edges)])
    return ClipCodes(turn, means, codes, sizes)


def bounds_of(queries: Sequence[Floats], codes: Sequence[ClipCodes], offsets: IntArray) -> Floats:
    """(queries, videos): upper bounds of the scores, which are means over modalities of the best clip."""
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
            rows[:, low:high] = first  # first touch of new memory, in the thread that uses it
            for work in works:
                work(low, high)

        share_rows([(add, offsets)], len(codes) * len(rows))
    return out


def add_bounds(coded: ClipCodes, offsets: IntArray, queries: Floats, out: Floats) -> Callable[[int, int], None]:
    """Return a function that adds one modality's part to the bounds ``(queries, videos)`` of a range of videos."""
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
    """Encode queries as integers, as large as a sum over all columns in 32 bits allows."""
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


def sample_clips(clips: NDArray[Any], offsets: IntArray) -> Floats:
    """The clips of a sample of videos across the corpus, minus their video's mean."""
    places = np.unique(np.linspace(0, len(offsets) - 2, SAMPLE_VIDEOS).astype(np.int64))
    found = []
    for place in places.tolist():
        rows = clips[offsets[place] : offsets[place + 1]].astype(np.float32)
        rows[~np.isfinite(rows).all(axis=1)] = 0  # encode_clips detects these later
        found.append(rows - rows.mean(axis=0))
    return np.concatenate(found)


def principal_directions(clips: Floats, queries: Floats) -> Floats:
    """(columns, columns), orthogonal: the principal directions of clips and queries, by falling variance."""
    few = [x[:: max(1, len(x) // SAMPLE_DIRECTIONS)] for x in (clips, queries)]
    spread = np.zeros((clips.shape[1], clips.shape[1]), np.float32)
    for x in few:
        spread += products_of(x.T, x.T) / np.float32(max(1e-12, float(np.square(x).sum())))
    return main_directions(spread)


def choose_width(samples: Sequence[Floats], turns: Sequence[Floats]) -> int:
    """The number of columns of bounds: the fewest with ``HELD_SHARE`` of the clips' variance, or all."""
    columns = len(turns[0])
    held = np.ones(columns)
    for clips, turn in zip(samples, turns, strict=True):
        variance = np.square(products_of(clips, turn.T)).sum(axis=0, dtype=np.float64)
        held = np.minimum(held, np.cumsum(variance) / max(float(variance.sum()), 1e-12))
    return next((w for w in WIDTHS if w < columns and held[w - 2] >= HELD_SHARE), columns)


def rank_by_best_clips(
    vectors: Sequence[LateVectors],
    offsets: IntArray,
    n: int,
    progress: Callable[[int, int], None] | None = None,
    width: int | None = None,
) -> tuple[IntArray, Floats] | None:
    """Places and scores ``(queries, n)`` of the best videos, best first, ties in the order of the corpus; or None.

    A video's score is the mean over modalities of the largest dot product of a query with one of its clips, which are
    the rows from ``offsets[video]`` on. It returns None if plain products are faster, if the kernel cannot be used, or
    if some values are not finite. ``width``, an even number, sets the number of columns of the bounds.
    """
    queries, videos = len(vectors[0].queries), len(offsets) - 1
    work = sum(v.clips.size * len(v.queries) for v in vectors)
    if n >= videos or not np.diff(offsets).all() or (width is None and work < MIN_PRODUCTS):
        return None
    if not is_wide() or not all(np.isfinite(v.queries).all() for v in vectors):
        return None
    samples = [sample_clips(v.clips, offsets) for v in vectors]
    turns = [principal_directions(sample, v.queries) for sample, v in zip(samples, vectors, strict=True)]
    width = width or choose_width(samples, turns)
    codes = [encode_clips(v.clips, offsets, first_directions(t, width)) for v, t in zip(vectors, turns, strict=True)]
    if not all(np.isfinite(c.means).all() for c in codes):
        return None
    step = max(1, MAX_BOUNDS // videos)
    found = []
    for begin in range(0, queries, step):
        part = [LateVectors(v.queries[begin : begin + step], v.clips) for v in vectors]
        bounds = bounds_of([v.queries for v in part], codes, offsets)
        found.append(best_within(part, offsets, bounds, n))
        if progress is not None:
            progress((begin + len(bounds)) * videos, queries * videos)
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def best_within(vectors: Sequence[LateVectors], offsets: IntArray, bounds: Floats, n: int) -> tuple[IntArray, Floats]:
    """The ``n`` best videos of each query, given bounds ``(queries, videos)``; scores as few videos as possible."""
    queries, videos = bounds.shape
    few = min(videos, n + n // 4)
    first = np.empty((queries, few), np.int64)

    def pick(low: int, high: int) -> None:
        first[low:high] = np.argpartition(bounds[low:high], videos - few, axis=1)[:, videos - few :]

    share_queries(pick, queries, videos)
    row = np.repeat(np.arange(queries), few)
    score = score_pairs(vectors, offsets, row, first.reshape(-1)).reshape(first.shape)
    needed = np.partition(score, few - n, axis=1)[:, few - n, None]
    others: list[tuple[IntArray, IntArray]] = []

    def list_others(low: int, high: int) -> None:
        reach = bounds[low:high] >= needed[low:high]
        np.put_along_axis(reach, first[low:high], values=False, axis=1)
        place = np.flatnonzero(reach)
        others.append((low + place // videos, place % videos))

    share_queries(list_others, queries, videos)
    more_row, more = (np.concatenate([o[i] for o in others]) for i in range(2))
    row = np.concatenate([row, more_row])
    video = np.concatenate([first.reshape(-1), more])
    scores = np.concatenate([score.reshape(-1), score_pairs(vectors, offsets, more_row, more)])
    good = np.flatnonzero(~(scores < needed[row, 0]))
    good = good[np.lexsort((video[good], -scores[good], row[good]))]
    begins = np.searchsorted(row[good], np.arange(queries))
    chosen = good[begins[:, None] + np.arange(n)]
    return video[chosen], scores[chosen]


def share_queries(work: Callable[[int, int], None], queries: int, videos: int) -> None:
    """Call ``work`` with ranges of queries, in several threads."""
    step = max(1, BOUNDS_PER_TASK // videos)
    run_together([partial(work, low, high) for low, high in pairwise([*range(0, queries, step), queries])])


def score_pairs(vectors: Sequence[LateVectors], offsets: IntArray, query: IntArray, video: IntArray) -> Floats:
    """The score of each pair of a query and a video."""
    small = video.astype(np.uint16) if len(offsets) <= 1 << 16 else video  # radix sort
    order = np.argsort(small, kind="stable")
    asked, there = query[order], video[order]
    found = np.zeros(len(order), np.float32)
    share = np.float32(1 / len(vectors))

    def score(low: int, high: int) -> None:
        first, beyond = there[low], there[high - 1] + 1
        starts, mine = offsets[first : beyond + 1] - offsets[first], there[low:high] - first
        for v in vectors:
            rows = as_floats(v.clips[offsets[first] : offsets[beyond]])
            columns = rows.shape[1]
            given = (
                address(rows, np.float32, -1, columns), columns,
                address(starts, np.int64, -1), len(starts) - 1, len(rows),
                address(v.queries, np.float32, -1, columns), len(v.queries),
                address(asked[low:high], np.int64, -1), address(mine, np.int64, high - low), high - low,
                share, writable(found[low:high], np.float32, high - low),
            )  # fmt: skip
            call(kernels().add_pair_scores, *given)

    edges = [*range(0, len(order), PAIRS_PER_TASK), len(order)]
    run_together([partial(score, low, high) for low, high in pairwise(edges)])
    out = np.empty_like(found)
    out[order] = found
    return out
