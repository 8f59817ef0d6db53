"""Predict a run with a trained model: ranked moments (or videos) for each query of a split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements, Saliency
from momentseek.core.moments.run import TASKS, Run
from momentseek.core.ranking import EndTime, Scores, Spans, merge, moments_of, suppress, top
from momentseek.models.features.data import Data, DataSplit
from momentseek.models.inference.encode import (
    EncodedCorpus,
    StageCallback,
    encode_corpus,
    encode_queries,
)
from momentseek.models.inference.first_stage import (
    MAX_TENSOR_NUMBERS,
    RankedVideos,
    best_videos,
    from_pools,
    from_run,
    from_scores,
    from_truth,
    match_pools,
    membership,
    pool_videos,
    retrieve,
)
from momentseek.models.inference.second_stage import (
    ClipTimes,
    TimedMoments,
    moments_of_pairs,
    saliency_of_pairs,
    spans_of,
    with_cutoffs,
)
from momentseek.models.model import CorpusModel, ModelConfig
from momentseek.recognition.exported.preparation import edges

DEPTH_GROWTH = 4
"""Factor by which more spans are ranked when suppression leaves too few moments."""
MAX_MERGED_SPANS = 1 << 22
"""Maximum number of spans, over several queries, that are ranked together."""
MomentArrays = tuple[IntArray, FloatArray, FloatArray, FloatArray]
"""Videos, starts, ends and scores of moments, each ``(queries, k)``; missing moments score minus infinity."""
MAX_HELD_SPANS = 1 << 25
"""Maximum number of spans in memory between the second stage and the ranking."""
EXPECTED_MOMENTS_PER_CLIP = 16
"""Expected number of predicted moments per clip of a model of times; a model with more needs more memory."""


@dataclass(frozen=True, eq=False)
class ClipSpans:
    """Spans of clips; their times are those of the clips' edges."""

    spans: Spans
    clips: ClipTimes
    end_time: EndTime

    @property
    def score(self) -> Scores:
        """The scores, (queries, videos, spans)."""
        return self.spans.score

    def times(
        self, query: IntArray, column: IntArray, place: IntArray, video: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Starts and ends of spans: the start of the first clip and the end of the last."""
        first, last = (
            np.where(video >= 0, x[query, column, place], 0).astype(np.int64)
            for x in (self.spans.first, self.spans.last)
        )
        begin = self.clips.place[np.maximum(video, 0)]
        return moments_of(first, last, self.clips.edges, begin, self.end_time)


Candidates = ClipSpans | TimedMoments
"""The moments that a model found in the videos of each query, before ranking."""


def rank_moments(
    spans: Candidates,
    candidates: RankedVideos,
    alpha: float,
    k: int,
    nms: float | None,
) -> MomentArrays:
    """The ``k`` best candidates of each query's videos, as moments in seconds.

    ``nms`` drops moments that overlap a better one of their video by more than this IoU. Whether a moment is dropped
    depends on better ones only, so a few of the best are ranked first, and more only for queries with too few left.
    """
    each = max(1, MAX_MERGED_SPANS // max(1, spans.score[:1].size))
    found = []
    for first in range(0, len(candidates), each):
        rows = np.arange(first, min(first + each, len(candidates)))
        depth = k if nms is None else DEPTH_GROWTH * k
        while len(rows):
            moments = _merge_spans(spans, candidates, rows, alpha, depth)
            enough = np.ones(len(rows), dtype=bool)
            if nms is not None:
                complete = (moments[3][:, -1] == -np.inf) | (depth >= spans.score[0].size)
                moments = _suppress_overlaps(moments, nms, k)
                enough = complete | (moments[3][:, -1] > -np.inf)
            found.append((rows[enough], cast(MomentArrays, tuple(x[enough] for x in moments))))
            rows, depth = rows[~enough], DEPTH_GROWTH * depth
    order = np.argsort(np.concatenate([rows for rows, _ in found]), kind="stable")
    return join_parts([moments for _, moments in found], min(k, spans.score[0].size), order)


def _merge_spans(spans: Candidates, candidates: RankedVideos, rows: IntArray, alpha: float, depth: int) -> MomentArrays:
    """The ``depth`` best candidates of all videos of the queries at ``rows``, best first."""
    scores = spans.score[rows]
    if alpha:
        column, span, score = merge(scores, candidates.score[rows], alpha, depth)
    else:  # the same, without a copy in double precision
        places, best = top(scores.reshape(len(rows), -1), depth)
        column, span = np.divmod(places, max(1, scores.shape[2]))
        score = best.astype(np.float64)
    here = rows[:, None]
    real = score > -np.inf
    video = np.where(real, candidates.video[here, column], -1)
    start, end = spans.times(here, column, span, video)
    return np.maximum(video, 0), start, end, score


def _suppress_overlaps(moments: MomentArrays, nms: float, k: int) -> MomentArrays:
    """The first ``k`` moments that overlap no better one of their video by more than ``nms``."""
    video, start, end, score = moments
    kept = suppress(start, end, nms, limit=k, video=video) & (score > -np.inf)
    order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
    score = np.where(kept, score, -np.inf)
    return cast(MomentArrays, tuple(np.take_along_axis(x, order, axis=1) for x in (video, start, end, score)))


def join_parts(parts: Sequence[MomentArrays], width: int, order: IntArray) -> MomentArrays:
    """Concatenate parts, padded to ``width`` with missing moments, and sort their rows by ``order``."""
    columns = []
    for i in range(4):
        blocks = []
        for part in parts:
            fill = -np.inf if i == 3 else 0
            blocks.append(np.pad(part[i], ((0, 0), (0, width - part[i].shape[1])), constant_values=fill))
        columns.append(np.concatenate(blocks)[order])
    return cast(MomentArrays, tuple(columns))


def predict(
    model: CorpusModel,
    data: Data,
    split: DataSplit | str,
    *,
    k: int = 40,
    task: str = "VCMR",
    videos: Run | NDArray[Any] | None = None,
    first: int | None = None,
    pools: bool = True,
    nms: float | None = None,
    alpha: float | None = None,
    end_time: EndTime = "inclusive",
    saliency: bool = True,
    encoded: EncodedCorpus | None = None,
    batch: int = 64,
    cells: int = MAX_TENSOR_NUMBERS,
    progress: StageCallback | None = None,
    searched: Callable[[IntArray], None] | None = None,
) -> Run:
    r"""Predict the ``k`` best moments (VCMR, SVMR) or videos (VR) for each query of the split.

    VCMR searches the best ``config.videos`` videos by ``match`` and ranks their spans by ``span + alpha * match``,
    the order of XML's :math:`p_{st}\, p_{ed} \exp(\alpha s)` (TVR, section 4.4). ``videos`` replaces the first stage
    by another system's: a Run (its videos in rank order) or scores ``(queries, corpus)``. ``first`` replaces
    ``config.videos``. SVMR searches the videos with a relevant moment, and ranks by the span's score alone. ``nms``
    drops moments that overlap a better one of the same video by more than this IoU. ``encoded`` is a corpus that is
    already encoded. ``batch`` and ``cells`` (values in a temporary tensor) limit the memory and do not change results.

    If the truth has pools (MVMR), each query searches all videos of its pool and no others; any model can do this. With
    ``videos``, it searches the first ``first`` videos of that list that are in the pool. VR ranks the pool's videos.
    ``pools=False`` searches the whole corpus instead.

    In SVMR, a model that rates clips adds the saliency of each query's clips, unless ``saliency`` is False.

    ``searched`` is called with the number of videos searched for each query. It is less than asked for if the query's
    pool, or the other system's list, has fewer videos.
    """
    if task not in TASKS:
        raise MomentseekError(f"there is no task {task!r}; tasks are {', '.join(TASKS)}")
    if k < 1:
        raise MomentseekError(f"{k} moments per query cannot be ranked; ask for 1 or more")
    if isinstance(split, str):
        split = data.split(split)
    truth, ids = split.truth, split.truth.query_ids
    if not ids:
        raise MomentseekError(f"{truth.source}: has no queries; nothing can be predicted")
    pooled = pools and truth.pools is not None and task != "SVMR"
    ranks = videos is None and (not pooled or task == "VR" or first is not None)
    if task != "SVMR" and ranks and not model.retrieves:
        raise MomentseekError(f"this model does not rank videos; give another model's run ({parameter('videos')})")
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
    candidates = _first_stage(
        model, truth, queries, corpus, task, k if task == "VR" else (first or model.config.videos), videos,
        pooled=pooled, ranks=ranks, scored=weight != 0, cells=cells, progress=progress,
    )  # fmt: skip
    if videos is not None and weight and task == "VCMR":
        candidates = RankedVideos(candidates.video, model.weigh_first_stage(candidates.score))
    if searched is not None:
        searched(np.count_nonzero(candidates.video >= 0, axis=1))
    if task == "VR":
        return _video_run(candidates, corpus.names, truth)
    if model.unit_depth and task == "VCMR":
        queries = with_cutoffs(model, queries, corpus, candidates.video, cells=cells)
    times = ClipTimes(data, corpus.names, model.config, split.durations)
    search = MomentSearch(
        model=model, queries=queries, corpus=corpus, candidates=candidates, times=times, k=k, weight=weight, nms=nms,
        end_time=end_time, cells=cells, progress=progress,
    )  # fmt: skip
    rated = None
    if saliency and task == "SVMR" and model.rates_clips:
        rated = saliency_of_pairs(model, queries, corpus, candidates.video[:, 0], cells=cells)
    return _moment_run(search.moments(), corpus.names, truth, task, rated)


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentSearch:
    """The second stage: finds the best moments of each query in the videos of the first stage."""

    model: CorpusModel
    queries: EncodedCorpus
    corpus: EncodedCorpus
    candidates: RankedVideos
    times: ClipTimes
    k: int
    weight: float
    """Weight of the video's score, which is added to the span's score."""
    nms: float | None
    end_time: EndTime
    cells: int
    progress: StageCallback | None

    @property
    def grid(self) -> int:
        """Maximum number of spans or moments of the longest video."""
        config = self.model.config
        each = EXPECTED_MOMENTS_PER_CLIP if self.model.continuous else config.longest - config.shortest + 1
        return int(self.corpus.counts.max()) * each

    def moments(self) -> MomentArrays:
        """Return the ``k`` best moments of every query. They are computed in batches of queries to limit memory.

        Without ``nms`` (non-maximum suppression), only the ``k`` best spans of each video are candidates. With it, all
        spans are, because some of the best are dropped. Models that predict times directly always give all candidates.
        """
        count, every = len(self.queries), self.nms is not None
        wanted = self.grid if every or self.model.continuous else min(self.k, self.grid)
        most = max(1, MAX_HELD_SPANS // max(1, self.candidates.video.shape[1] * wanted))
        each = -(-count // -(-count // most))  # as few parts as possible, of similar size
        parts = []
        for first in range(0, count, each):
            places = np.arange(first, min(first + each, count))
            part = self.candidates.of(places)
            spans = self._candidates(places, part.video, None if every else wanted)
            parts.append(rank_moments(spans, part, self.weight, self.k, self.nms))
            if self.progress is not None:
                self.progress("ranking", int(places[-1]) + 1, count)
        return join_parts(parts, max(found[0].shape[1] for found in parts), np.arange(count))

    def _candidates(self, places: IntArray, videos: IntArray, wanted: int | None) -> Candidates:
        given = self.model, self.queries, self.corpus, places, videos
        if self.model.continuous:
            return moments_of_pairs(*given, self.times, cells=self.cells, progress=self.progress)
        least = 2 if self.end_time == "start" else 1  # a span of one clip would have no length
        best = spans_of(*given, wanted, least=least, usable=self.times.usable, cells=self.cells, progress=self.progress)
        return ClipSpans(best, self.times, self.end_time)


def _first_stage(
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
    """The videos to search for each query: the truth's, its pool, another system's list or the model's own."""
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


def summarise(run: Run, data: Data, config: ModelConfig, share: float) -> Run:
    """Summarise each query's video by its most salient clips, up to a ``share`` of them (as UniVTG does).

    It takes at least one clip. Adjacent clips form one window, whose score is their mean saliency.
    """
    if run.saliency is None:
        raise MomentseekError(
            "a summary needs a model that rates clips (moment_detr, qd_detr, univtg) and known videos"
        )
    counts: list[int] = []
    videos: list[str] = []
    times: list[tuple[float, float]] = []
    scores: list[float] = []
    for query in range(len(run)):
        rated = run.saliency.scores[slice(*run.saliency.offsets[query : query + 2]), 0]
        rows = run.video[run.offsets[query] : run.offsets[query + 1]]
        if not len(rows) or not len(rated):
            counts.append(0)
            continue
        name = run.videos[rows[0]]
        at = edges(data.rows(name), config.max_clips, config.fit, data.clip_seconds)
        best = np.argsort(-rated, kind="stable")[: max(1, int(share * len(rated)))]
        chosen = np.sort(best)
        runs = np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1)
        runs.sort(key=lambda part: -float(rated[part].mean()))
        counts.append(len(runs))
        videos += [name] * len(runs)
        times += [(float(at[part[0]]), float(at[part[-1] + 1])) for part in runs]
        scores += [float(rated[part].mean()) for part in runs]
    starts, ends = zip(*times, strict=True) if times else ((), ())
    return Run.from_groups(
        run.query_ids, counts, videos, starts, ends, scores, queries=run.queries, saliency=run.saliency, task="SVMR",
        source="(summary)",
    )  # fmt: skip


def _relevant_videos(truth: Judgements) -> tuple[str, ...]:
    named = np.unique(truth.video[truth.relevance > 0])
    return tuple(truth.videos[i] for i in named)


def _video_run(candidates: RankedVideos, names: Sequence[str], truth: Judgements) -> Run:
    zeros = np.zeros(candidates.score.shape)
    return _moment_run((candidates.video, zeros, zeros, candidates.score), names, truth, "VR")


def _moment_run(
    found: MomentArrays, names: Sequence[str], truth: Judgements, task: str, saliency: Saliency | None = None
) -> Run:
    """Build a run whose moments are sorted as in written files: by score, then video, start and end."""
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
        saliency=saliency,
        task=task,
        source="(predicted)",
    )
    return run.sort_by_score()
