"""Second stage: the best spans in each of a query's videos, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.models.batch import Encodings
from momentseek.models.inference import curve_spans
from momentseek.models.inference.curve_spans import SpanRules, fill_spans
from momentseek.models.inference.encode import StageCallback, device_of, inference_mode, map_numbers
from momentseek.models.inference.first_stage import MAX_TENSOR_NUMBERS, like_sized_blocks
from momentseek.models.inference.ragged import EncodedCorpus, LazyTensors
from momentseek.models.model import CorpusModel, CurveFilters
from momentseek.moments.arrays import IntArray
from momentseek.native.library import kernels
from momentseek.ranking import Spans, best_spans

MIN_QUERIES_PER_VIDEO = 32
"""Queries that search one video, from which on they are scored apart from those of other videos."""
SHARED_VIDEO_FACTOR = 4
"""Such a block may be this many times larger than others, because its video is held once."""


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
    """The ``k`` best spans of every (query, video): arrays ``(queries, videos, k)``, minus infinity where none is left.

    ``places`` are those of queries, and ``videos`` ``(queries, n)`` those of videos, -1 for none. Pairs are scored in
    order of the videos' lengths, many queries of one video together, so that little is padded and each video is
    fetched once; where many queries search one video it is not even copied for each. ``usable`` counts the clips spans
    may lie in (those before the video's end), all by default; spans of fewer than ``least`` clips are left out. With
    ``k=None`` all spans are returned, not sorted: by first clip, then length.
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
            filters, queries, corpus, places[row], video, slots, limits, rules, flat, every=k is None, progress=progress
        )
        return best
    done = 0
    for part, scores in score_pairs(model, model.spans, queries, corpus, places[row], video, cells):
        r, c, v = row[part], column[part], video[part]
        grid = scores.float().cpu().numpy()
        if np.isnan(grid).any():
            raise MomentseekError("the model's scores are no numbers; its training has diverged")
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
    """What the compiled way to spans needs, or None where it does not apply or does not pay."""
    if pairs < curve_spans.MIN_PAIRS or device_of(model).type != "cpu":
        return None
    filters = model.curve_filters
    if filters is None or kernels() is None or not corpus.values["mask"].all():
        return None
    return filters


T = TypeVar("T")


def sorted_pairs(videos: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Row, column and video of every pair in ``videos`` (queries, n), -1 for none; those of one video together."""
    row, column = np.nonzero(videos >= 0)
    video = videos[row, column]
    order = np.lexsort((row, video))  # and then by size, in alike, which keeps this order among equals
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
    """Blocks of pairs with what ``score`` says of them: first the videos that many queries search, then all others.

    ``score`` is the model's ``spans`` or ``moments``; blocks hold about ``cells`` numbers.
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
    return LazyTensors(one, lambda key: one[key].expand(n, *one[key].shape[1:]))
