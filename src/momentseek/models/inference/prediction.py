"""From a trained model to a Run: which moments (or videos) it would return for each query of a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.features.clips import edges
from momentseek.models.inference.encode import (
    CountedQueryFeatures,
    StageCallback,
    TimedVideoFeatures,
    encode_corpus,
    encode_queries,
)
from momentseek.models.inference.first_stage import (
    MAX_TENSOR_NUMBERS,
    RankedVideos,
    from_run,
    from_scores,
    from_truth,
    retrieve,
)
from momentseek.models.inference.pools import best_videos, from_pools, match_pools, membership, pool_videos
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.inference.second_stage import spans_of
from momentseek.models.model import CorpusModel, ModelConfig
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import BoolArray, FloatArray, IntArray, offsets_of
from momentseek.moments.run import TASKS
from momentseek.ranking import Spans, merge, moments_of, suppress, top
from momentseek.ranking.times import EndTime

MIN_SPANS_BEFORE_NMS = 200
"""Spans of a video that suppression chooses from at first, if more than it is to leave."""
DEPTH_GROWTH = 4
"""Where these are too few, so many times as many."""
MAX_MERGED_SPANS = 1 << 22
"""Spans of several queries that are ranked together."""
MAX_HELD_SPANS = 1 << 25
"""Spans held at once between the second stage and the merging."""


class SearchableSplit(CountedQueryFeatures, Protocol):
    """What is searched and asked; ``features.data.Split`` is one."""

    @property
    def truth(self) -> Judgements: ...
    @property
    def corpus(self) -> tuple[str, ...]: ...
    @property
    def durations(self) -> Mapping[str, float]: ...


def predict(
    model: CorpusModel,
    data: TimedVideoFeatures,
    split: SearchableSplit | str,
    *,
    k: int = 40,
    task: str = "VCMR",
    videos: Run | NDArray[Any] | None = None,
    first: int | None = None,
    pools: bool = True,
    nms: float | None = None,
    alpha: float | None = None,
    end_time: EndTime = "inclusive",
    encoded: EncodedCorpus | None = None,
    batch: int = 64,
    cells: int = MAX_TENSOR_NUMBERS,
    progress: StageCallback | None = None,
    searched: Callable[[IntArray], None] | None = None,
) -> Run:
    r"""The ``k`` best moments (VCMR, SVMR) or videos (VR) for each query of the split.

    VCMR searches the best ``config.videos`` videos by ``match`` and ranks their spans by ``span + alpha * match``,
    the order of XML's :math:`p_{st}\, p_{ed} \exp(\alpha s)` (TVR, section 4.4). ``videos`` replaces the first stage
    by another system's: a Run (its videos in rank order) or scores ``(queries, corpus)``; ``first`` replaces
    ``config.videos``. SVMR searches the videos that hold a relevant moment, and ranks by the span alone. ``nms`` drops
    moments that overlap a better one of the same video by more. ``encoded`` spares encoding the corpus again; blocks
    and batches never change what is found.

    Where the truth has pools (MVMR), each query searches all videos of its pool, and no others; any model can. With
    ``videos`` these are the first ``first`` of that list that are in the pool. VR ranks the pool's videos.
    ``pools=False`` searches the whole corpus all the same.

    ``searched`` is told how many videos each query is searched in: fewer than asked for where its pool, or the list of
    another system, has no more.
    """
    if task not in TASKS:
        raise MomentseekError(f"there is no task {task!r}; tasks are {', '.join(TASKS)}")
    if k < 1:
        raise MomentseekError(f"{k} moments per query cannot be ranked; ask for 1 or more")
    if isinstance(split, str):
        split = cast(SearchableSplit, cast(Any, data).split(split))
    truth, ids = split.truth, split.truth.query_ids
    if not ids:
        raise MomentseekError(f"{truth.source}: has no queries; nothing can be predicted")
    pooled = pools and truth.pools is not None and task != "SVMR"
    ranks = videos is None and (not pooled or task == "VR" or first is not None)
    if task != "SVMR" and ranks and not model.retrieves:
        raise MomentseekError("this model does not rank videos; give it another model's run with --videos")
    corpus = encoded
    if corpus is None:
        names = split.corpus
        if task == "SVMR":
            names = _relevant_videos(truth)
        elif pooled and not isinstance(videos, np.ndarray):
            names = pool_videos(truth)
        corpus = encode_corpus(model, data, names, batch=batch, progress=progress)
    queries = encode_queries(model, split, ids, progress=progress)
    weight = 0.0 if task == "SVMR" else (model.config.alpha if alpha is None else alpha)
    candidates = _candidates(
        model, truth, queries, corpus, task, k if task == "VR" else (first or model.config.videos), videos,
        pooled=pooled, ranks=ranks, scored=weight != 0, cells=cells, progress=progress,
    )  # fmt: skip
    if searched is not None:
        searched(np.count_nonzero(candidates.video >= 0, axis=1))
    if task == "VR":
        return _video_run(candidates, corpus.names, truth)
    clocks = ClipTimes(data, corpus.names, model.config, split.durations)
    grid = int(corpus.counts.max()) * (model.config.longest - model.config.shortest + 1)
    least = 2 if end_time == "start" else 1  # a span of one clip would have no length

    def search(asked: IntArray, wanted: int) -> Iterator[tuple[IntArray, MomentArrays]]:
        """Moments of some queries, from the ``wanted`` best spans of each video; again from more if these were few."""
        wanted = grid if nms is not None and grid <= DEPTH_GROWTH * wanted else min(wanted, grid)
        most = max(1, MAX_HELD_SPANS // max(1, candidates.video.shape[1] * wanted))
        each = -(-len(asked) // -(-len(asked) // most))  # as few parts as that allows, alike in size
        for begin in range(0, len(asked), each):
            mine = asked[begin : begin + each]
            part = candidates.of(mine)
            spans = spans_of(
                model, queries, corpus, mine, part.video,
                None if wanted == grid and nms is not None else wanted,
                least=least, usable=clocks.usable, cells=cells, progress=progress,
            )  # fmt: skip
            found = rank_moments(spans, part, clocks, weight, k, nms, end_time)
            sure = (
                np.ones(len(mine), bool) if nms is None or wanted == grid else _is_final(spans, part, weight, found, k)
            )
            yield mine[sure], cast(MomentArrays, tuple(x[sure] for x in found))
            if progress is not None:
                progress("ranking", int(mine[-1]) + 1, len(ids))
            if not sure.all():
                yield from search(mine[~sure], DEPTH_GROWTH * wanted)

    parts = list(search(np.arange(len(ids)), k if nms is None else max(k, MIN_SPANS_BEFORE_NMS)))
    order = np.argsort(np.concatenate([asked for asked, _ in parts]), kind="stable")
    width = max(found[0].shape[1] for _, found in parts)
    return _moment_run(_join_parts([found for _, found in parts], width, order), corpus.names, truth, task)


def _candidates(
    model: CorpusModel,
    truth: Judgements,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    task: str,
    n: int,
    videos: Run | NDArray[Any] | None,
    *,
    pooled: bool,
    ranks: bool,
    scored: bool,
    cells: int,
    progress: StageCallback | None,
) -> RankedVideos:
    """The videos each query is searched in: the truth's, its pool, another system's list or the model's own."""
    ids = truth.query_ids
    if task == "SVMR":
        return from_truth(truth, ids, corpus.position)
    pool = from_pools(truth, corpus.position) if pooled else None
    inside = None if pool is None or videos is None else membership(pool, len(corpus))
    if isinstance(videos, Run):
        return from_run(videos, ids, corpus.position, n, inside)
    if videos is not None:
        return from_scores(videos, len(ids), len(corpus), n, inside)
    if pool is None:
        return retrieve(model, queries, corpus, n, cells=cells, progress=progress)
    if ranks or (scored and model.retrieves):
        pool = match_pools(model, queries, corpus, pool, progress)
    return best_videos(pool, n) if ranks else pool


class ClipTimes:
    """When the clips of each video begin and end; none ends after its video."""

    def __init__(
        self, data: TimedVideoFeatures, names: Sequence[str], config: ModelConfig, durations: Mapping[str, float]
    ) -> None:
        times, usable = [], []
        for name in names:
            seconds = durations.get(name, float("nan"))
            at = edges(data.rows(name), config.max_clips, config.fit, data.clip_seconds, seconds)
            at = np.fmin(at, seconds)
            times.append(at)
            usable.append(int(np.count_nonzero(at[:-1] < at[-1])))
        self.edges: FloatArray = np.concatenate(times)
        self.place: IntArray = offsets_of(map(len, times))
        self.usable: IntArray = np.array(usable, dtype=np.int64)


MomentArrays = tuple[IntArray, FloatArray, FloatArray, FloatArray]
"""Videos, starts, ends and scores, ``(queries, k)``; a score of minus infinity where there is none."""


def rank_moments(
    spans: Spans,
    candidates: RankedVideos,
    clocks: ClipTimes,
    alpha: float,
    k: int,
    nms: float | None,
    end_time: EndTime,
) -> MomentArrays:
    """The ``k`` best spans of each query's videos, as moments in seconds.

    With ``nms`` each video's moments drop each other, best first, and the ``k`` best survivors of all videos stay.
    What survives depends on better moments only, so the best few of a query are looked at first, and more of them
    only for queries that have too few survivors.
    """
    each = max(1, MAX_MERGED_SPANS // max(1, spans.score[:1].size))
    found = []
    for first in range(0, len(candidates), each):
        rows = np.arange(first, min(first + each, len(candidates)))
        depth = k if nms is None else DEPTH_GROWTH * k
        while len(rows):
            moments = _merge_spans(spans, candidates, rows, clocks, alpha, depth, end_time)
            enough = np.ones(len(rows), dtype=bool)
            if nms is not None:
                complete = (moments[3][:, -1] == -np.inf) | (depth >= spans.score[0].size)
                moments = _suppress_overlaps(moments, nms, k)
                enough = complete | (moments[3][:, -1] > -np.inf)
            found.append((rows[enough], cast(MomentArrays, tuple(x[enough] for x in moments))))
            rows, depth = rows[~enough], DEPTH_GROWTH * depth
    order = np.argsort(np.concatenate([rows for rows, _ in found]), kind="stable")
    return _join_parts([moments for _, moments in found], min(k, spans.score[0].size), order)


def _merge_spans(
    spans: Spans,
    candidates: RankedVideos,
    rows: IntArray,
    clocks: ClipTimes,
    alpha: float,
    depth: int,
    end_time: EndTime,
) -> MomentArrays:
    """The ``depth`` best spans of all videos of the queries at ``rows``, best first."""
    scores = spans.score[rows]
    if alpha:
        column, span, score = merge(scores, candidates.score[rows], alpha, depth)
    else:  # the same, without a copy in double precision
        places, best = top(scores.reshape(len(rows), -1), depth)
        column, span = np.divmod(places, max(1, scores.shape[2]))
        score = best.astype(np.float64)
    here = rows[:, None]
    real = score > -np.inf
    video = np.where(real, candidates.video[here, column], 0)
    first, last = (np.where(real, x[here, column, span], 0).astype(np.int64) for x in (spans.first, spans.last))
    start, end = moments_of(first, last, clocks.edges, clocks.place[video], end_time)
    return video, start, end, score


def _suppress_overlaps(moments: MomentArrays, nms: float, k: int) -> MomentArrays:
    """The first ``k`` moments that no better one of their video drops."""
    video, start, end, score = moments
    kept = suppress(start, end, nms, limit=k, video=video) & (score > -np.inf)
    order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
    score = np.where(kept, score, -np.inf)
    return cast(MomentArrays, tuple(np.take_along_axis(x, order, axis=1) for x in (video, start, end, score)))


def _is_final(spans: Spans, candidates: RankedVideos, alpha: float, found: MomentArrays, k: int) -> BoolArray:
    """Which queries' moments stay the same however many more spans of each video are looked at.

    A span that was not looked at scores at most as high as the last one of its video that was.
    """
    floor = spans.score[:, :, -1].astype(np.float64)
    floor = (floor if not alpha else floor + alpha * candidates.score).max(axis=1, initial=-np.inf)
    score = found[3]
    worst = score[:, k - 1] if score.shape[1] >= k else np.full(len(score), -np.inf)
    sure: BoolArray = (floor == -np.inf) | (worst > floor)
    return sure


def _join_parts(parts: Sequence[MomentArrays], width: int, order: IntArray) -> MomentArrays:
    """Parts below each other, each widened by places without a moment, with their rows put in order."""
    columns = []
    for i in range(4):
        blocks = []
        for part in parts:
            fill = -np.inf if i == 3 else 0
            blocks.append(np.pad(part[i], ((0, 0), (0, width - part[i].shape[1])), constant_values=fill))
        columns.append(np.concatenate(blocks)[order])
    return cast(MomentArrays, tuple(columns))


def _relevant_videos(truth: Judgements) -> tuple[str, ...]:
    named = np.unique(truth.video[truth.relevance > 0])
    return tuple(truth.videos[i] for i in named)


def _video_run(candidates: RankedVideos, names: Sequence[str], truth: Judgements) -> Run:
    zeros = np.zeros(candidates.score.shape)
    return _moment_run((candidates.video, zeros, zeros, candidates.score), names, truth, "VR")


def _moment_run(found: MomentArrays, names: Sequence[str], truth: Judgements, task: str) -> Run:
    """A Run, each query's rows in the order files are written in: by score, then video, start, end."""
    real = found[3] > -np.inf
    counts = np.count_nonzero(real, axis=1)
    video, start, end, score = (x[real] for x in found)
    run = Run.from_groups(
        truth.query_ids,
        counts.tolist(),
        [names[i] for i in video.tolist()],
        start,
        end,
        score,
        queries=truth.queries,
        task=task,
        source="(predicted)",
    )
    return run.sort_by_score()
