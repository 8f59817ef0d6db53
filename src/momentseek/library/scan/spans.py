"""The videos with the best spans for a query of three curves, exactly: no span that belongs among them is missed.

The bytes of every clip give each video an upper bound of its best span; the best bounds are scored from float16 rows,
and then every video whose bound reaches the k-th best of those, as in :mod:`momentseek.library.scan.exact`. A library
of more than :data:`MAX_EXACT_ROWS` is not read whole: there the plan finds the videos with the best clips, of which
the best spans are taken, and :func:`measure_completeness` says how often that is all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from momentseek.core.native.kernels import address, kernels, writable
from momentseek.library.scan.exact import (
    NONE_GONE,
    BestVideos,
    OpenVideos,
    VideoSelection,
    open_videos,
    score_contenders,
)
from momentseek.library.scan.kernels import (
    ROWS_PER_BLOCK,
    NumpyKernel,
    Places,
    Scores,
    SegmentPart,
    best_kernel,
    code_addresses,
    cut_blocks,
    quantise_queries,
    row_task,
    video_addresses,
    video_count,
)
from momentseek.library.scan.recall import SAMPLE_QUERIES, normalise
from momentseek.library.scan.scan import MIN_PLANNED_SHARE, Scan
from momentseek.library.scan.threads import RowTask, share_rows
from momentseek.library.segments import Segment
from momentseek.recognition.exported.span_head import SpanHead, SpanQuery

ROUNDING = 2.0**-22
"""Largest rounding error of a bound for each clip of a span, relative to the sum of the query's lengths."""
FIRST_MOMENTS = 20
MAX_EXACT_ROWS = 4_000_000
"""Largest number of clips that are all read, which takes a tenth of a second."""


def search_spans(
    scan: Scan,
    query: SpanQuery,
    k: int,
    *,
    depth: int = 300,
    allowed: NDArray[np.bool_] | None = None,
    gone: NDArray[np.int64] = NONE_GONE,
    exact: bool = False,
) -> BestVideos:
    """The k videos with the best spans and their scores: exactly, or with the plan of a very large library.

    With the plan they are the best of the ``depth`` videos with the best clips.
    """
    for segment in scan.segments:
        segment.check_size()
    places = open_videos(scan.segments, allowed, gone)
    left = sum(video_count(s, p) for s, p in zip(scan.segments, places, strict=True))
    if exact or not is_planned(scan) or left <= MIN_PLANNED_SHARE * scan.videos:
        return best_span_videos(scan.segments, query, k, places)
    near = scan.search(query.probe, max(k, depth), allowed=allowed, gone=gone)
    scores = np.empty(near.ids.shape, np.float32)
    for number in np.unique(near.segment):
        mine = near.segment == number
        scores[mine] = span_scores([(scan.segments[number], near.at[mine])], query)
    order = np.lexsort((near.ids[0], -scores[0]))[:k]
    return BestVideos(near.ids[:, order], scores[:, order], near.segment[:, order], near.at[:, order])


def is_planned(scan: Scan) -> bool:
    """Whether spans are searched with a plan instead of among all clips."""
    return scan.plan is not None and scan.rows > MAX_EXACT_ROWS


def best_span_videos(segments: Sequence[Segment], query: SpanQuery, k: int, places: OpenVideos) -> BestVideos:
    """The k videos with the best spans, of some videos of each segment, exactly."""
    chosen = VideoSelection(segments, places)
    if k <= 0 or not chosen.total:
        return BestVideos.empty(1)
    flat, scores = score_contenders(span_bounds(chosen.parts, query), k, partial(_score_places, chosen, query))
    ids = chosen.ids(flat)
    order = np.lexsort((ids, -scores))[:k]
    owner, at = chosen.locate(flat[order])
    return BestVideos(ids[order][None], scores[order][None], owner[None], at[None])


def _score_places(chosen: VideoSelection, query: SpanQuery, flat: Places) -> Scores:
    return chosen.scores_by(flat, lambda parts: span_scores(parts, query))


def span_bounds(parts: Sequence[SegmentPart], query: SpanQuery) -> Scores:
    """Upper bounds of the videos' best spans, from the bytes of their clips; -inf without a finite one."""
    if isinstance(best_kernel(), NumpyKernel):
        return span_scores(parts, query)
    outs = [np.empty(video_count(*part), np.float32) for part in parts]
    share_rows([_bounds_task(*part, query, out) for part, out in zip(parts, outs, strict=True)], 3)
    longest = query.shortest + len(query.lengths)
    return np.concatenate(outs) + np.float32(ROUNDING * (longest + 16) * query.reach.sum())


def span_scores(parts: Sequence[SegmentPart], query: SpanQuery) -> Scores:
    """The score of each video's best span, from float16 rows; -inf without a finite one."""
    if isinstance(best_kernel(), NumpyKernel) or any(s.half.dtype != np.float16 for s, _ in parts):
        return np.concatenate([_plain_scores(*part, query) for part in parts])
    outs = [np.empty(video_count(*part), np.float32) for part in parts]
    share_rows([_scores_task(*part, query, out) for part, out in zip(parts, outs, strict=True)], 3)
    return np.concatenate(outs)


def _plain_scores(segment: Segment, places: Places | None, query: SpanQuery) -> Scores:
    half = np.asarray(segment.half)
    out = np.full(video_count(segment, places), -np.inf, np.float32)
    for first, _, rows, starts, filled in cut_blocks(segment, places, ROWS_PER_BLOCK):
        vectors = half[rows].astype(np.float32)
        out[first + filled] = query.best(vectors, np.append(starts, len(vectors)))
    return out


def _bounds_task(segment: Segment, places: Places | None, query: SpanQuery, out: Scores) -> RowTask:
    ready = quantise_queries(query.vectors, segment.dim)
    asked = (
        address(ready.codes, np.int16, 3, segment.dim),
        address(ready.steps, np.float32, 3),
        address(ready.slacks, np.float32, 3),
    )
    given = *code_addresses(segment), *video_addresses(segment, places), *asked, *_lengths(query)
    kernel = partial(kernels().span_bounds_of_one, *given, writable(out, np.float32, -1))
    return row_task(segment, places, kernel, ready, query)


def _scores_task(segment: Segment, places: Places | None, query: SpanQuery, out: Scores) -> RowTask:
    vectors = np.ascontiguousarray(query.vectors, np.float32)
    half = address(np.asarray(segment.half), np.float16, segment.rows, segment.dim)
    asked = address(vectors, np.float32, 3, segment.dim), *_lengths(query)
    given = half, segment.dim, *video_addresses(segment, places), *asked, writable(out, np.float32, -1)
    return row_task(segment, places, partial(kernels().span_scores_of_one, *given), vectors, query)


def _lengths(query: SpanQuery) -> tuple[int, int, int]:
    return address(query.lengths, np.float32, -1), query.shortest, len(query.lengths)


@dataclass(frozen=True)
class SpanCompleteness:
    """The share of the exact first moments that a library's search finds, and its cost."""

    queries: int
    k: int
    planned: bool
    """Whether a plan is used at all; if not, every answer is proved complete."""
    complete: float
    """Share of queries whose first ``k`` moments are all found."""
    recall: float
    milliseconds: float
    """Median time of one query."""
    exact_milliseconds: float

    def __str__(self) -> str:
        if not self.planned:
            return f"the first {self.k} moments are proved complete: all clips are read ({self.milliseconds:.1f} ms)"
        return (
            f"the first {self.k} moments are complete for {self.complete:.1%} of {self.queries} queries (recall "
            f"{self.recall:.4f}): {self.milliseconds:.1f} ms each, proved complete {self.exact_milliseconds:.1f} ms"
        )


def measure_completeness(
    scan: Scan,
    head: SpanHead,
    *,
    sample: int = SAMPLE_QUERIES,
    k: int = FIRST_MOMENTS,
    gone: Sequence[int] = (),
    queries: Sequence[SpanQuery] | None = None,
) -> SpanCompleteness:
    """Compare planned with exact search by spans on some queries, by default made from spans of the library itself.

    The first k moments lie in the k videos with the best spans; where these are found, so are those.
    """
    asked = sample_span_queries(scan, head, sample) if queries is None else queries
    away, planned = np.asarray(gone, np.int64), is_planned(scan)
    shares, quick, slow = [], [], []
    for query in asked:
        begun = time.perf_counter()
        found = search_spans(scan, query, k, depth=head.videos, gone=away)
        middle = time.perf_counter()
        truth = search_spans(scan, query, k, gone=away, exact=True) if planned else found
        quick.append(middle - begun)
        slow.append(time.perf_counter() - middle if planned else quick[-1])
        shares.append(float(np.isin(truth.ids, found.ids).mean()) if truth.ids.size else 1.0)
    return SpanCompleteness(
        queries=len(asked),
        k=k,
        planned=planned,
        complete=float(np.mean(np.array(shares) == 1)) if shares else 1.0,
        recall=float(np.mean(shares)) if shares else 1.0,
        milliseconds=1000 * float(np.median(quick)) if quick else 0.0,
        exact_milliseconds=1000 * float(np.median(slow)) if slow else 0.0,
    )


def sample_span_queries(scan: Scan, head: SpanHead, count: int = SAMPLE_QUERIES, seed: int = 0) -> list[SpanQuery]:
    """Queries near spans of the library, drawn evenly over its clips.

    Each vector has a cosine of 0.45 to 0.9 with what it should find, and the length from training.
    """
    rng = np.random.default_rng(seed)
    sizes = np.array([segment.rows for segment in scan.segments], np.int64)
    ends = np.cumsum(sizes)
    queries = []
    for row in np.sort(rng.integers(0, int(sizes.sum()), count)) if sizes.sum() else ():
        number = int(np.searchsorted(ends, row, side="right"))
        segment, first = scan.segments[number], int(row - (ends[number] - sizes[number]))
        video = int(np.searchsorted(segment.offsets, first, side="right")) - 1
        begin, end = int(segment.offsets[video]), int(segment.offsets[video + 1])
        last = min(first + int(rng.integers(head.shortest, head.longest + 1)), end)
        rows = np.pad(np.nan_to_num(segment.half[begin:end].astype(np.float32)), ((1, 1), (0, 0)))
        s, e = first - begin + 1, last - begin  # of the padded rows, both included
        looks = np.stack([rows[s : e + 1].mean(0), rows[s] - rows[s - 1], rows[e] - rows[e + 1]])
        cosine = rng.uniform(0.45, 0.9, (3, 1))
        noise = normalise(rng.normal(size=looks.shape))
        vectors = normalise(cosine * normalise(looks) + np.sqrt(1 - cosine**2) * noise) * np.array(head.scales)[:, None]
        lengths = np.zeros(head.longest - head.shortest + 1, np.float32)
        queries.append(SpanQuery(vectors.astype(np.float32), lengths, head.shortest))
    return queries
