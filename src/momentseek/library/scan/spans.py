"""The videos with the best spans for a query of three curves, exactly: no span that belongs among them is missed.

The bytes of every clip give each video an upper bound of its best span; the best bounds are scored from float16 rows,
and then every video whose bound reaches the k-th best of those, as in :mod:`momentseek.library.scan.exact`. In a large
library the clips' leading columns, which its plan keeps, rule out most videos before that.
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
    highest,
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
from momentseek.library.scan.plan import BLOCK_CLIPS, LeadingColumns
from momentseek.library.scan.recall import normalise
from momentseek.library.scan.scan import MIN_PLANNED_SHARE, Scan
from momentseek.library.scan.threads import RowTask, share_rows
from momentseek.library.segments import Segment
from momentseek.recognition.exported.span_head import SpanHead, SpanQuery

ROUNDING = 2.0**-22
"""Largest rounding error of a bound for each clip of a span, relative to the sum of the query's lengths."""
TURNING = 1e-4
"""The same of turning clips to their leading columns, in all."""
FIRST_VIDEOS = 50
"""One in this many videos is searched first, for a score that the others must reach."""


def search_spans(
    scan: Scan,
    query: SpanQuery,
    k: int,
    *,
    allowed: NDArray[np.bool_] | None = None,
    gone: NDArray[np.int64] = NONE_GONE,
) -> BestVideos:
    """The k videos with the best spans and their scores, exactly."""
    for segment in scan.segments:
        segment.check_size()
    places = open_videos(scan.segments, allowed, gone)
    left = sum(video_count(s, p) for s, p in zip(scan.segments, places, strict=True))
    if scan.plan is not None and scan.plan.is_led and k > 0 and left > MIN_PLANNED_SHARE * scan.videos:
        known = [scan.plan.leading.get(segment.name) for segment in scan.segments]
        places = shortlist(scan.segments, known, query, k, places)
    return best_span_videos(scan.segments, query, k, places)


def shortlist(
    segments: Sequence[Segment], known: Sequence[LeadingColumns | None], query: SpanQuery, k: int, places: OpenVideos
) -> OpenVideos:
    """The videos that can be among the k best, as far as leading columns tell; all of a segment without them."""
    covered = [(i, leading) for i, leading in enumerate(known) if leading is not None]
    parts = [segments[i] for i, _ in covered]
    bounds, some, need = [], [], -np.inf
    for share in (FIRST_VIDEOS, 1):
        bounds = [np.empty(-(-len(part.ids) // share), np.float32) for part in parts]
        tasks = [_leads_task(segments[i], leads, query, need, b) for (i, leads), b in zip(covered, bounds, strict=True)]
        share_rows(tasks, 3)
        each = zip([places[i] for i, _ in covered], bounds, strict=True)
        some = [np.arange(len(b)) if p is None else p[p < len(b)] for p, b in each]
        flat = np.concatenate([b[p] for b, p in zip(bounds, some, strict=True)])
        best = highest(flat, min(len(flat), k + k // 4))
        scores = _score_places(VideoSelection(parts, list(some)), query, best)
        need = max(need, float(np.sort(scores)[-k])) if len(scores) >= k else need
    kept, margin = list(places), TURNING * float(query.reach.sum())
    for (i, _), b, p in zip(covered, bounds, some, strict=True):
        kept[i] = p[b[p] + margin >= need]
    return kept


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


def _leads_task(segment: Segment, known: LeadingColumns, query: SpanQuery, need: float, out: Scores) -> RowTask:
    turned = query.vectors.astype(np.float64) @ known.basis
    ready = quantise_queries(turned, columns := known.basis.shape[1])
    others = np.sqrt(np.maximum(query.reach**2 - np.square(turned).sum(axis=1), 0)) + TURNING
    scaled = [np.asarray(values, np.float32) for values in (ready.steps / 127, ready.slacks / 127, others)]
    given = (
        address(known.blocks, np.int8, -1, columns // 2, BLOCK_CLIPS, 2),
        address(known.rest, np.uint8, segment.rows), address(known.change, np.uint8, segment.rows), columns,
        *video_addresses(segment, None)[:3], address(ready.codes, np.int16, 3, columns),
        *(address(values, np.float32, 3) for values in scaled), *_lengths(query), need, writable(out, np.float32, -1),
    )  # fmt: skip
    work, starts = row_task(segment, None, partial(kernels().span_leads_of_one, *given), ready, scaled, query, known)
    return work, starts[: len(out) + 1]


def _lengths(query: SpanQuery) -> tuple[int, int, int]:
    return address(query.lengths, np.float32, -1), query.shortest, len(query.lengths)


@dataclass(frozen=True)
class SpanRecall:
    """The share of queries whose first k videos by spans equal those that reading all bytes gives, and the cost."""

    queries: int
    k: int
    complete: float
    milliseconds: float
    """Median time of one query."""
    exact_milliseconds: float

    def __str__(self) -> str:
        return (
            f"the first {self.k} moments by spans are complete for {self.complete:.1%} of {self.queries} queries: "
            f"{self.milliseconds:.1f} ms each, {self.exact_milliseconds:.1f} ms with all bytes read"
        )


def measure_span_recall(scan: Scan, head: SpanHead, *, sample: int = 32, k: int = 20, gone: Places) -> SpanRecall:
    """Compare the search by spans with one that reads the bytes of every clip, on queries made from the library."""
    places = open_videos(scan.segments, None, gone)
    same, seconds = [], []
    for query in sample_span_queries(scan, head, sample):
        begun = time.perf_counter()
        found = search_spans(scan, query, k, gone=gone)
        middle = time.perf_counter()
        truth = best_span_videos(scan.segments, query, k, places)
        seconds.append((middle - begun, time.perf_counter() - middle))
        same.append(np.array_equal(found.ids, truth.ids))
    quick, slow = (1000 * np.median(seconds, axis=0)).tolist() if seconds else (0.0, 0.0)
    return SpanRecall(len(same), k, float(np.mean(same)) if same else 1.0, quick, slow)


def sample_span_queries(scan: Scan, head: SpanHead, count: int, seed: int = 0) -> list[SpanQuery]:
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
