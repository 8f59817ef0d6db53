"""The best videos by the mean of each modality's best clip: exact, without multiplying every number of every clip.

Every video gets an upper bound of its score; the videos with the best bounds are scored, and then every other one whose
bound reaches the n-th best score. Bounds come from fewer and smaller numbers than scores do. The clips of a video are
alike, so its mean ``m`` is multiplied once and a clip gives the rest, ``x``; and what clips differ in lies mostly in
some tens of directions, so ``x`` is turned until these come first, and only ``w`` columns are kept, as bytes with one
scale per video. With ``q`` a query, cut after column ``w`` into ``q1, q2`` and ``x1, x2``, and codes ``q1 = t b + d``
and ``x1 = s c + e``, Cauchy and Schwarz say

    q · (m + x) <= q · m + t s (b · c) + |t b| |e| + |d| |x1| + |q2| |x2|

How many columns are cheapest is tried on a sample. Where even all of them would cost more than plain products do, there
are no bounds.
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
from momentseek.native.halves import as_floats, float_copy
from momentseek.native.library import address, call, is_wide, kernels, writable
from momentseek.native.panels import pad_panel, panel_places, query_panels

Floats = NDArray[np.float32]
MAX_BOUNDS = 1 << 26
"""Bounds held at once (256 MB); more queries than that allows are answered in parts."""
QUERIES_TOGETHER = 512
"""Queries whose codes stay in the second cache while the videos pass by."""
ROWS_PER_BLOCK = 1 << 14
"""Clips that are turned and coded at a time."""
MIN_PRODUCTS = 1 << 36
"""Products of numbers from which on bounds are tried: about two seconds of plain products on one thread."""
PAIRS_PER_TASK = 1 << 12
"""Pairs that a thread scores at a time."""
SAMPLE_VIDEOS, SAMPLE_QUERIES = 256, 48
CODE_SLACK = 0.011
"""About what codes add to a bound, as a share of the lengths: (|t b| |e| + |d| |x1|) / (|q1| |x1|)."""
SCAN, TURN, SCORE, PLAIN = 1.6e-11, 2.6e-11, 6e-11, 2.6e-11
"""Seconds of one thread per product of numbers: in a bound, in turning, in scoring a pair, in plain products."""


@dataclass(frozen=True, eq=False)
class LateVectors:
    """Vectors of queries ``(queries, columns)`` and of the clips of all videos ``(clips, columns)`` in one modality."""

    queries: Floats
    clips: NDArray[Any]


@dataclass(frozen=True, eq=False)
class ClipCodes:
    """The clips of one modality as bytes, less their video's mean, with what bounds need beside them."""

    turn: Floats | None
    """(columns, ``w``): onto the first directions; None for all columns as they are."""
    means: Floats
    """(videos, columns)."""
    codes: NDArray[np.int8]
    sizes: Floats
    """(videos, 4): scale, and the largest |e|, |x1| and |x2| of its clips."""


def rank_by_best_clips(
    vectors: Sequence[LateVectors],
    offsets: IntArray,
    n: int,
    progress: Callable[[int, int], None] | None = None,
    width: int | None = None,
) -> tuple[IntArray, Floats] | None:
    """Places and scores ``(queries, n)`` of the best videos, best first, ties in the corpus' order; or None.

    A video's score is the mean over modalities of the largest dot product of a query with one of its clips, which are
    the rows from ``offsets[video]`` on. None says that plain products are quicker, that the kernel cannot be used, or
    that there are numbers that are none.
    ``width`` sets the number of columns instead of a trial.
    """
    queries, videos = len(vectors[0].queries), len(offsets) - 1
    if n >= videos or not np.diff(offsets).all() or (width is None and work_of(vectors) < MIN_PRODUCTS):
        return None
    if not is_wide() or not all(np.isfinite(v.queries).all() for v in vectors):
        return None
    turns = [principal_directions(v, offsets) for v in vectors]
    width = width or choose_width(vectors, turns, offsets, n)
    if width is None:
        return None
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


def work_of(vectors: Sequence[LateVectors]) -> int:
    """Products of numbers that scoring every clip takes."""
    return sum(v.clips.size * len(v.queries) for v in vectors)


# How many columns


def sample_videos(clips: NDArray[Any], offsets: IntArray) -> tuple[Floats, Floats, IntArray]:
    """Some videos: their clips less the video's mean, these means, and where each video's clips begin."""
    places = np.unique(np.linspace(0, len(offsets) - 2, SAMPLE_VIDEOS).astype(np.int64))
    counts = np.diff(offsets)[places]
    rows = np.concatenate([clips[offsets[v] : offsets[v + 1]] for v in places.tolist()]).astype(np.float32)
    rows[~np.isfinite(rows).all(axis=1)] = 0  # which is found out when all clips are encoded
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    means = (np.add.reduceat(rows, starts, axis=0) / counts[:, None]).astype(np.float32)
    return rows - np.repeat(means, counts, axis=0), means, starts


def principal_directions(vectors: LateVectors, offsets: IntArray) -> Floats:
    """(columns, columns), orthogonal: from the direction with most of what clips and queries vary in to the least."""
    rows, _, _ = sample_videos(vectors.clips, offsets)
    spread = sum(x.T @ x / max(1e-12, float(np.vdot(x, x))) for x in (rows, vectors.queries))
    return np.ascontiguousarray(np.linalg.eigh(spread)[1][:, ::-1])


def first_directions(turn: Floats, width: int) -> Floats | None:
    """(columns, ``width``): the first directions, mixed so that no column has more to hold than the others."""
    if width >= len(turn):
        return None
    mixed = np.linalg.qr(np.random.default_rng(0).standard_normal((width, width)))[0]
    return np.ascontiguousarray(turn[:, :width] @ mixed.astype(np.float32))


def choose_width(vectors: Sequence[LateVectors], turns: Sequence[Floats], offsets: IntArray, n: int) -> int | None:
    """How many columns make ranking cheapest, by trying on some queries and videos; None for no bounds at all."""
    columns, queries = vectors[0].clips.shape[1], len(vectors[0].queries)
    asked = np.unique(np.linspace(0, queries - 1, SAMPLE_QUERIES).astype(np.int64))
    tried = {8 * max(1, round(columns * s / 8)) for s in (1 / 12, 1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2, 2 / 3)}
    widths = [*sorted(w for w in tried if w < columns), columns]
    bounds: Any = [np.float32(0)] * len(widths)
    score: Any = np.float32(0)
    for v, turn in zip(vectors, turns, strict=True):
        x, means, starts = sample_videos(v.clips, offsets)
        base = v.queries[asked] @ means.T
        x, q = x @ turn, v.queries[asked] @ turn
        products = np.zeros((len(asked), len(x)), np.float32)
        (near, far), (length, tail) = ((np.zeros(len(a), np.float32), np.square(a).sum(axis=1)) for a in (q, x))
        for i, (begin, end) in enumerate(pairwise([0, *widths])):
            products += q[:, begin:end] @ x[:, begin:end].T
            asks, sizes = (np.square(a[:, begin:end]).sum(axis=1) for a in (q, x))
            near, far, length, tail = (
                near + asks,
                np.maximum(far - asks, 0),
                length + sizes,
                np.maximum(tail - sizes, 0),
            )
            best = base + np.maximum.reduceat(products, starts, axis=1)
            longest, left = (np.sqrt(np.maximum.reduceat(a, starts)) for a in (length, tail))
            slack = CODE_SLACK * np.sqrt(near)[:, None] * longest + np.sqrt(far)[:, None] * left
            bounds[i] = bounds[i] + best + slack
        score = score + best
    kept = min(score.shape[1], max(1, round(n * score.shape[1] / (len(offsets) - 1))))
    needed = np.partition(score, -kept, axis=1)[:, -kept, None]
    share = [float((b >= needed).mean()) for b in bounds]
    cost = [
        SCAN * w + (TURN * columns * w / queries if w < columns else 0) + SCORE * s * columns
        for w, s in zip(widths, share, strict=True)
    ]
    cheapest = int(np.argmin(cost))
    return widths[cheapest] if cost[cheapest] < PLAIN * columns else None


# Bounds


def rounding(columns: int) -> float:
    """A bound on what sums of so many products in single precision may be off, as a share of the vectors' lengths."""
    return 2 * columns * 2.0**-23


def encode_clips(clips: NDArray[Any], offsets: IntArray, turn: Floats | None) -> ClipCodes:
    """The codes of all clips, block by block of videos."""
    columns = clips.shape[1]
    width = columns if turn is None else turn.shape[1]
    codes = np.empty((len(clips), width), np.int8)
    means = np.empty((len(offsets) - 1, columns), np.float32)
    sizes = np.empty((len(offsets) - 1, 4), np.float32)

    def encode(low: int, high: int) -> None:
        rows = float_copy(clips[offsets[low] : offsets[high]])
        squares = np.empty(len(rows), np.float32)
        starts = offsets[low : high + 1] - offsets[low]
        there = address(starts, np.int64, -1), high - low, len(rows)
        lengths = address(squares, np.float32, len(rows))
        mean = writable(means[low:high], np.float32, high - low, columns)
        call(kernels().centre_videos, writable(rows, np.float32, -1, columns), columns, *there, mean, lengths)
        turned = rows if turn is None else np.ascontiguousarray(rows @ turn)
        written = (
            writable(codes[offsets[low] : offsets[high]], np.int8, len(rows), width),
            writable(sizes[low:high], np.float32, high - low, 4),
        )
        call(kernels().quantise_videos, address(turned, np.float32, -1, width), lengths, width, *there, *written)

    edges = [0]
    while edges[-1] < len(offsets) - 1:
        beyond = int(np.searchsorted(offsets, offsets[edges[-1]] + ROWS_PER_BLOCK, side="right")) - 1
        edges.append(max(edges[-1] + 1, beyond))
    run_together([partial(encode, low, high) for low, high in pairwise(edges)])
    sizes[:, 3] = np.sqrt(np.square(sizes[:, 3]) + rounding(columns) * np.square(sizes[:, 2:]).sum(axis=1))
    return ClipCodes(turn, means, codes, sizes)


def bounds_of(queries: Sequence[Floats], codes: Sequence[ClipCodes], offsets: IntArray) -> Floats:
    """(queries, videos): what no score is above."""
    share = np.float32(1 / len(queries))
    out = np.empty((len(queries[0]), len(offsets) - 1), np.float32)
    for begin in range(0, len(out), QUERIES_TOGETHER):
        rows = out[begin : begin + QUERIES_TOGETHER]
        rows[:] = 0
        for every, coded in zip(queries, codes, strict=True):
            asked = every[begin : begin + QUERIES_TOGETHER] * share
            rows += asked @ coded.means.T
            lengths = np.linalg.norm(coded.means, axis=1) + np.hypot(coded.sizes[:, 2], coded.sizes[:, 3])
            rows += rounding(asked.shape[1]) * np.linalg.norm(asked, axis=1)[:, None] * lengths.max()
            work = add_bounds(coded, offsets, query_terms(asked, coded.turn), rows)
            share_rows([(work, offsets)], len(asked))
    return out


def add_bounds(coded: ClipCodes, offsets: IntArray, asked: QueryCodes, out: Floats) -> Callable[[int, int], None]:
    """The work of adding what codes promise to bounds ``(queries, videos)``, from a first video to a last."""
    queries, videos = out.shape
    rows, width = coded.codes.shape
    room = panel_places(queries)
    ready = (
        address(coded.codes, np.int8, rows, width), width,
        address(offsets, np.int64, videos + 1), videos, rows,
        address(asked.panels, np.int16, room * (width + width % 2)), queries,
        address(asked.steps, np.float32, room), address(asked.zeros, np.float32, room),
        address(coded.sizes, np.float32, videos, 4), address(asked.lengths, np.float32, 3, queries), 3,
        writable(out, np.float32, queries, videos), videos,
    )  # fmt: skip

    def work(low: int, high: int, _kept: QueryCodes = asked) -> None:
        call(kernels().add_bounds_of_many, *ready, low, high)

    return work


@dataclass(frozen=True, eq=False)
class QueryCodes:
    """Queries as whole numbers in panels, with what bounds need beside them; one place each, and some left over."""

    panels: NDArray[np.int16]
    steps: Floats
    zeros: Floats
    lengths: Floats
    """(3, queries): |t b|, |d| and |q2|."""


def query_terms(queries: Floats, turn: Floats | None) -> QueryCodes:
    """The codes of queries, as wide as a sum over all columns in 32 bits allows."""
    first = queries if turn is None else queries @ turn
    most = min(np.iinfo(np.int16).max, (2**31 - 1) // (128 * max(1, first.shape[1])))
    step = np.maximum(np.abs(first).max(axis=1) / np.float32(most), np.float32(1e-30))
    codes = np.rint(first / step[:, None])
    missed = np.linalg.norm(first - step[:, None] * codes, axis=1)
    tail = np.zeros(len(first), np.float32)
    if turn is not None:
        square = np.square(queries).sum(axis=1)
        left = np.maximum(square - np.square(first).sum(axis=1), 0)
        tail = np.sqrt(left + np.float32(rounding(queries.shape[1])) * square)
    lengths = np.stack([step * np.linalg.norm(codes, axis=1), missed, tail]).astype(np.float32)
    zeros = np.zeros(panel_places(len(first)), np.float32)
    return QueryCodes(query_panels(codes.astype(np.int16)), pad_panel(step.astype(np.float32)), zeros, lengths)


# Scores


def best_within(vectors: Sequence[LateVectors], offsets: IntArray, bounds: Floats, n: int) -> tuple[IntArray, Floats]:
    """The ``n`` best videos of each query, given bounds ``(queries, videos)``, by scoring as few as that takes."""
    queries, videos = bounds.shape
    few = min(videos, n + n // 4)
    first = np.argpartition(bounds, videos - few, axis=1)[:, videos - few :]
    row = np.repeat(np.arange(queries), few)
    score = score_pairs(vectors, offsets, row, first.reshape(-1)).reshape(first.shape)
    needed = np.partition(score, few - n, axis=1)[:, few - n, None]
    others = bounds >= needed
    np.put_along_axis(others, first, values=False, axis=1)
    more_row, more = np.nonzero(others)
    row = np.concatenate([row, more_row])
    video = np.concatenate([first.reshape(-1), more])
    scores = np.concatenate([score.reshape(-1), score_pairs(vectors, offsets, more_row, more)])
    order = np.lexsort((video, -scores, row))
    begins = np.searchsorted(row[order], np.arange(queries))
    chosen = order[begins[:, None] + np.arange(n)]
    return video[chosen], scores[chosen]


def score_pairs(vectors: Sequence[LateVectors], offsets: IntArray, query: IntArray, video: IntArray) -> Floats:
    """The score of each pair of a query and a video."""
    order = np.argsort(video, kind="stable")
    asked, there = query[order], video[order]
    found = np.zeros(len(order), np.float32)
    share = np.float32(1 / len(vectors))

    def score(low: int, high: int) -> None:
        first, beyond = there[low], there[high - 1] + 1
        starts, mine = offsets[first : beyond + 1] - offsets[first], there[low:high] - first
        for v in vectors:
            rows = as_floats(v.clips[offsets[first] : offsets[beyond]])
            columns = rows.shape[1]
            call(
                kernels().add_pair_scores,
                address(rows, np.float32, -1, columns), columns,
                address(starts, np.int64, -1), len(starts) - 1, len(rows),
                address(v.queries, np.float32, -1, columns), len(v.queries),
                address(asked[low:high], np.int64, -1), address(mine, np.int64, high - low), high - low,
                share, writable(found[low:high], np.float32, high - low),
            )  # fmt: skip

    edges = [*range(0, len(order), PAIRS_PER_TASK), len(order)]
    run_together([partial(score, low, high) for low, high in pairwise(edges)])
    out = np.empty_like(found)
    out[order] = found
    return out
