"""Second stage: find the best spans in each of a query's videos, in blocks of limited size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray, offsets_of
from momentseek.core.moments.judgements import Saliency
from momentseek.core.native.kernels import address, as_floats, call, kernels, writable
from momentseek.core.ranking import Spans, best_spans
from momentseek.library.scan.threads import run_together
from momentseek.models.batch import Encodings
from momentseek.models.features.data import Data
from momentseek.models.inference.encode import (
    EncodedCorpus,
    LazyTensors,
    StageCallback,
    TensorShape,
    device_of,
    inference_mode,
    map_numbers,
    refuse_nan,
)
from momentseek.models.inference.first_stage import MAX_TENSOR_NUMBERS, like_sized_blocks
from momentseek.models.model import CorpusModel, CurveFilters, ModelConfig
from momentseek.recognition.exported.preparation import edges

MIN_PAIRS = 4096
"""Minimum number of pairs for which the compiled kernel is faster than tensors."""
PAIRS_PER_TASK = 1 << 10
"""Number of pairs that a thread scores at a time."""
PAIRS_PER_TURN = 1 << 16
"""Number of pairs between two progress reports."""
MIN_QUERIES_PER_VIDEO = 32
"""Minimum number of queries of a video to score them in blocks of this video only."""
SHARED_VIDEO_FACTOR = 4
"""Factor by which a block of one video may be larger than others, because the video is stored once."""
T = TypeVar("T")


@dataclass(frozen=True)
class SpanRules:
    """Limits on the lengths of spans in clips: the model's shortest and longest, and the shortest to return."""

    shortest: int
    longest: int
    least: int


def fill_spans(
    filters: CurveFilters,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    query: IntArray,
    video: IntArray,
    *,
    slots: IntArray,
    usable: IntArray,
    rules: SpanRules,
    best: Spans,
    every: bool,
    progress: StageCallback | None = None,
) -> None:
    """Compute the spans of pairs of a query and a video, and write them into the rows ``slots`` of ``best``.

    The pairs are sorted by video. The arrays of ``best`` are ``(pairs, k)``. With ``every``, all spans are written, by
    first clip and length, else the best ones.
    """
    offsets = corpus.offsets["mask"]
    share = np.float32(1 / len(filters.terms))
    taps = np.ascontiguousarray(filters.weights, np.float32)
    asked = [np.ascontiguousarray(queries.values[name], np.float32) for name, _, _ in filters.terms]
    fine: list[bool] = []

    def score(low: int, high: int) -> None:
        first, beyond = int(video[low]), int(video[high - 1]) + 1
        starts, there = offsets[first : beyond + 1] - offsets[first], video[low:high] - first
        rows = slice(offsets[first], offsets[beyond])
        counts = np.diff(starts)[there]
        curves = np.zeros((high - low, int(counts.max())), np.float32)
        pairs = high - low
        chosen = np.ascontiguousarray(query[low:high], np.int64), np.ascontiguousarray(there, np.int64)
        for questions, (_, clips, lengths) in zip(asked, filters.terms, strict=True):
            vectors = as_floats(corpus.values[clips][rows])
            scale = as_floats(corpus.values[lengths][rows]) if lengths else None
            columns = vectors.shape[1]
            given = (
                address(vectors, np.float32, -1, columns),
                None if scale is None else address(scale, np.float32, len(vectors)), columns,
                address(starts, np.int64, -1), len(starts) - 1, len(vectors),
                address(questions, np.float32, -1, columns), len(questions),
                address(chosen[0], np.int64, pairs), address(chosen[1], np.int64, pairs), pairs,
                share, writable(curves, np.float32, pairs, -1), curves.shape[1],
            )  # fmt: skip
            call(kernels().add_curves, *given)
        fine.append(find_spans(curves, counts, usable[video[low:high]], taps, rules, slots[low:high], best, every))

    for begin in range(0, len(video), PAIRS_PER_TURN):
        end = min(begin + PAIRS_PER_TURN, len(video))
        edges = [*range(begin, end, PAIRS_PER_TASK), end]
        run_together([partial(score, low, high) for low, high in pairwise(edges)])
        if not all(fine):
            raise MomentseekError("the model's scores are NaN; its training has diverged")
        if progress is not None:
            progress("spans", end, len(video))


def find_spans(
    curves: NDArray[np.float32],
    clips: IntArray,
    usable: IntArray,
    taps: NDArray[np.float32],
    rules: SpanRules,
    slots: IntArray,
    best: Spans,
    every: bool,
) -> bool:
    """Write the spans of curves ``(pairs, clips)`` into ``best``; return whether no value is NaN."""
    pairs, width = curves.shape
    rows, most = best.score.shape
    numbers = np.ones(1, np.int64)
    ready = [np.ascontiguousarray(a, np.int64) for a in (clips, usable, slots)]
    edges = (None, None) if every else tuple(writable(a, np.int16, rows, most) for a in (best.first, best.last))
    given = (
        address(curves, np.float32, pairs, width), pairs, width,
        address(ready[0], np.int64, pairs), address(ready[1], np.int64, pairs),
        address(taps, np.float32, 2, -1), taps.shape[1], rules.shortest, rules.longest, rules.least,
        address(ready[2], np.int64, pairs), rows, most, writable(best.score, np.float32, rows, most), *edges,
        writable(numbers, np.int64, 1),
    )  # fmt: skip
    call(kernels().spans_of_curves, *given)
    return bool(numbers[0])


def spans_of(
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    places: IntArray,
    videos: IntArray,
    k: int | None,
    *,
    least: int = 1,
    usable: IntArray | None = None,
    cells: int = MAX_TENSOR_NUMBERS,
    progress: StageCallback | None = None,
) -> Spans:
    """The ``k`` best spans of every query and video, as arrays ``(queries, videos, k)`` padded with minus infinity.

    ``places`` are the places of queries, and ``videos`` ``(queries, n)`` those of videos, -1 for none. Pairs are scored
    in the order of the videos' lengths, with the queries of a video together, so that there is little padding and each
    video is read once. A video that many queries search is not copied for each. ``usable`` is the number of clips of
    each video that spans may use (those before the video's end), by default all. Spans of fewer than ``least`` clips
    are left out. ``k=None`` returns all spans, by first clip and length.
    """
    config = model.config
    lengths = config.longest - config.shortest + 1
    most = int(corpus.counts.max(initial=1)) * lengths
    size = most if k is None else min(k, most)
    shape = (*videos.shape, size)
    score = np.full(shape, -np.inf, np.float32)
    first, last = (np.zeros(shape, np.int16) for _ in range(2))
    if k is None:  # every list has the same spans
        clip, length = np.divmod(np.arange(most), lengths)
        ends = (clip + config.shortest - 1 + length).astype(np.int16)
        first, last = np.broadcast_to(clip.astype(np.int16), shape), np.broadcast_to(ends, shape)
    best = Spans(first, last, score)
    row, column, video = sorted_pairs(videos)
    limits = corpus.counts if usable is None else usable
    if (filters := _filters(model, corpus, len(video))) is not None:
        edges = (first, last) if k is None else (first.reshape(-1, size), last.reshape(-1, size))
        flat = Spans(edges[0], edges[1], score.reshape(-1, size))
        rules = SpanRules(config.shortest, config.longest, least)
        slots = row * videos.shape[1] + column
        fill_spans(
            filters, queries, corpus, places[row], video, slots=slots, usable=limits, rules=rules, best=flat,
            every=k is None, progress=progress,
        )  # fmt: skip
        return best
    done = 0
    for part, scores in score_pairs(model, model.spans, queries, corpus, places[row], video, cells):
        r, c, v = row[part], column[part], video[part]
        grid = scores.float().cpu().numpy()
        refuse_nan(grid)
        if (limits[v] < corpus.counts[v]).any():
            last = np.add.outer(np.arange(grid.shape[1]), np.arange(grid.shape[2]) + config.shortest - 1)
            grid = np.where(last < limits[v][:, None, None], grid, -np.inf)
        if least > config.shortest:
            grid[:, :, : least - config.shortest] = -np.inf
        if k is None:
            score[r, c, : grid[0].size] = grid.reshape(len(grid), -1)
        else:
            found = best_spans(grid, size, config.shortest)
            width = found.score.shape[1]
            for mine, theirs in zip(best, found, strict=True):
                mine[r, c, :width] = theirs
        if progress is not None:
            done += len(part)
            progress("spans", done, len(video))
    return best


def _filters(model: CorpusModel, corpus: EncodedCorpus, pairs: int) -> CurveFilters | None:
    """The filters for the compiled kernel; None if it does not apply or does not pay."""
    if pairs < MIN_PAIRS or device_of(model).type != "cpu":
        return None
    filters = model.curve_filters
    if filters is None or kernels() is None or not corpus.has_rows_of_clips or not corpus.values["mask"].all():
        return None
    return filters


def sorted_pairs(videos: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Row, column and video of every pair in ``videos`` (queries, n; -1 for none), sorted by video."""
    row, column = np.nonzero(videos >= 0)
    video = videos[row, column]
    order = np.lexsort((row, video))  # like_sized_blocks keeps this order among equal sizes
    return row[order], column[order], video[order]


def score_pairs(
    model: CorpusModel,
    score: Callable[[Encodings, Encodings], T],
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    query: IntArray,
    video: IntArray,
    cells: int,
) -> Iterator[tuple[IntArray, T]]:
    """Yield blocks of pairs with their scores: first for videos that many queries search, then for all others.

    ``score`` is a method of the model such as ``spans`` or ``moments``; blocks have about ``cells`` values.
    """
    config = model.config
    each = corpus.width + model.pair_numbers + (0 if model.continuous else config.longest - config.shortest + 1)
    asking = int(queries.counts.max(initial=0)) * queries.width + queries.fixed
    working = 0 if model.retrieves else map_numbers(model)
    sizes = corpus.counts[video] * each + corpus.fixed + asking + working
    device = device_of(model)
    starts = np.flatnonzero(np.diff(video, prepend=-1))
    counts = np.diff(starts, append=len(video))
    popular = counts >= MIN_QUERIES_PER_VIDEO
    with inference_mode(model):
        for first, count in zip(starts[popular].tolist(), counts[popular].tolist(), strict=True):
            one = corpus.take(video[first : first + 1], device)
            step = max(1, SHARED_VIDEO_FACTOR * cells // int(sizes[first]))
            for a in range(first, first + count, step):
                part = np.arange(a, min(a + step, first + count))
                yield part, score(queries.take(query[part], device), _repeat(one, len(part)))
        rest = np.flatnonzero(~np.repeat(popular, counts))
        for block in like_sized_blocks(sizes[rest], cells):
            part = rest[block]
            yield part, score(queries.spread(query[part], device), corpus.spread(video[part], device))


def _repeat(one: Encodings, n: int) -> Encodings:
    """The encodings of one video repeated ``n`` times, without copies."""
    return cast(Encodings, LazyTensors(one, lambda key: one[key].expand(n, *one[key].shape[1:])))


class ClipTimes:
    """The start and end times of the clips of each video, in seconds, cut at the video's end."""

    def __init__(self, data: Data, names: Sequence[str], config: ModelConfig, durations: Mapping[str, float]) -> None:
        known = [durations.get(name, float("nan")) for name in names]
        at = [
            edges(data.rows(name), config.max_clips, config.fit, data.clip_seconds, seconds)
            for name, seconds in zip(names, known, strict=True)
        ]
        self.covered: FloatArray = np.array([each[-1] for each in at])
        """Seconds that each video's clips cover; predicted shares refer to them."""
        self.duration: FloatArray = np.array(known, dtype=np.float64)
        """Duration of each video in seconds; NaN if unknown."""
        at = [np.fmin(each, seconds) for each, seconds in zip(at, known, strict=True)]
        self.edges: FloatArray = np.concatenate(at)
        self.place: IntArray = offsets_of(map(len, at))
        self.usable: IntArray = np.array([np.count_nonzero(each[:-1] < each[-1]) for each in at], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class TimedMoments:
    """Moments in seconds with their scores, each ``(queries, videos, k)``; missing ones score minus infinity."""

    start: FloatArray
    end: FloatArray
    score: NDArray[np.float32]

    def times(
        self, query: IntArray, column: IntArray, place: IntArray, video: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Starts and ends of the entries at ``[query, column, place]``."""
        return self.start[query, column, place], self.end[query, column, place]


def moments_of_pairs(
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    places: IntArray,
    videos: IntArray,
    times: ClipTimes,
    *,
    cells: int = MAX_TENSOR_NUMBERS,
    progress: StageCallback | None = None,
) -> TimedMoments:
    """All moments that a model predicts for every query and video, in seconds.

    ``places`` are the places of queries, and ``videos`` ``(queries, n)`` those of videos, -1 for none. Times are cut to
    the video, and moments that are then empty are dropped.
    """
    row, column, video = sorted_pairs(videos)
    parts = []
    for part, found in score_pairs(model, model.moments, queries, corpus, places[row], video, cells):
        start, end, score = (x.float().cpu().numpy() for x in found)
        there = score > -np.inf
        if np.isnan(score).any() or not np.isfinite(start[there]).all() or not np.isfinite(end[there]).all():
            raise MomentseekError("the model's moments are NaN; its training has diverged")
        parts.append((part, *moments_in_seconds(model, start, end, score, video[part], times)))
        if progress is not None:
            progress("spans", sum(len(p[0]) for p in parts), len(video))
    width = max((start.shape[1] for _, start, _, _ in parts), default=1)
    shape = (*videos.shape, width)
    result = TimedMoments(np.zeros(shape), np.zeros(shape), np.full(shape, -np.inf, np.float32))
    for part, start, end, score in parts:
        here = row[part], column[part], slice(0, start.shape[1])
        result.start[here], result.end[here], result.score[here] = start, end, score
    return result


def moments_in_seconds(
    model: CorpusModel,
    start: NDArray[np.float32],
    end: NDArray[np.float32],
    score: NDArray[np.float32],
    video: IntArray,
    times: ClipTimes,
) -> tuple[FloatArray, FloatArray, NDArray[np.float32]]:
    """Convert shares of videos to seconds inside them, best first; empty moments score minus infinity.

    Moments are sorted before a model rounds their scores, so that moments with equal rounded scores stay in order.
    """
    order = np.argsort(-score, axis=1, kind="stable")
    start, end, score = (np.take_along_axis(x, order, axis=1) for x in (start, end, score))
    there = score > -np.inf
    begin, close, value = (np.where(there, x, 0).astype(np.float64) for x in (start, end, score))
    covered, duration = times.covered[video][:, None], times.duration[video][:, None]
    first, final, scores = model.to_seconds(begin, close, value, covered, duration)
    return first, final, np.where(there & (final > first), scores, -np.inf).astype(np.float32)


def saliency_of_pairs(
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    videos: IntArray,
    *,
    cells: int = MAX_TENSOR_NUMBERS,
) -> Saliency:
    """The model's saliency of each clip of every query's video, given in ``videos`` (queries,); -1 for none."""
    counts = np.where(videos >= 0, corpus.counts[np.maximum(videos, 0)], 0)
    offsets = offsets_of(counts.tolist())
    scores = np.zeros((int(offsets[-1]), 1))
    row, _, video = sorted_pairs(videos[:, None])
    for part, found in score_pairs(model, model.saliency, queries, corpus, row, video, cells):
        curves = found.float().cpu().numpy()
        refuse_nan(curves)
        for curve, query in zip(curves, row[part].tolist(), strict=True):
            first, last = offsets[query : query + 2]
            scores[first:last, 0] = curve[: last - first]
    return Saliency(offsets, scores)


def with_cutoffs(
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    videos: IntArray,
    *,
    cells: int = MAX_TENSOR_NUMBERS,
) -> EncodedCorpus:
    """Add to the queries a ``cutoff``: the score of the last of the ``unit_depth`` best parts of all their videos."""
    depth = model.unit_depth
    best = np.full((len(queries), depth), -np.inf, np.float32)
    row, _, video = sorted_pairs(videos)
    for part, found in score_pairs(model, model.unit_scores, queries, corpus, row, video, cells):
        scores = found.float().cpu().numpy()
        refuse_nan(scores)
        for each, query in zip(scores, row[part].tolist(), strict=True):
            best[query] = -np.partition(-np.concatenate([best[query], each]), depth - 1)[:depth]
    least = best.min(1)
    return replace(
        queries,
        shapes={**queries.shapes, "cutoff": TensorShape(None, (), "float32")},
        values={**queries.values, "cutoff": least},
    )
