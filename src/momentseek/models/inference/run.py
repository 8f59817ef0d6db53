"""From a trained model to a Run: which moments (or videos) it would return for each query of a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.features.clips import edges
from momentseek.models.inference.encode import Asked, Progress, Searched, encode_corpus, encode_queries
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.inference.second import spans_of
from momentseek.models.inference.videos import CELLS, Candidates, from_run, from_scores, from_truth, retrieve
from momentseek.models.model import CorpusModel, ModelConfig
from momentseek.moments import Judgements, Run
from momentseek.moments.arrays import FloatArray, IntArray, offsets_of
from momentseek.moments.run import TASKS
from momentseek.ranking import Spans, merge, moments_of, suppress
from momentseek.ranking.times import EndTime

BEFORE = 200
"""Moments of a query that suppression chooses from, if more than it is to leave (as TVR's code intends)."""
SPANS = 1 << 25
"""Spans held at once between the second stage and the merging."""


class Split(Asked, Protocol):
    """What is searched and asked; ``features.data.Split`` is one."""

    @property
    def truth(self) -> Judgements: ...
    @property
    def corpus(self) -> tuple[str, ...]: ...
    @property
    def durations(self) -> Mapping[str, float]: ...


def predict(
    model: CorpusModel,
    data: Searched,
    split: Split | str,
    *,
    k: int = 40,
    task: str = "VCMR",
    videos: Run | NDArray[Any] | None = None,
    nms: float | None = None,
    alpha: float | None = None,
    end_time: EndTime = "inclusive",
    encoded: EncodedCorpus | None = None,
    batch: int = 64,
    cells: int = CELLS,
    progress: Progress | None = None,
) -> Run:
    r"""The ``k`` best moments (VCMR, SVMR) or videos (VR) for each query of the split.

    VCMR searches the best ``config.videos`` videos by ``match`` and ranks their spans by ``span + alpha * match``,
    the order of XML's :math:`p_{st}\, p_{ed} \exp(\alpha s)` (TVR, section 4.4). ``videos`` replaces the first stage
    by another system's: a Run (its videos in rank order) or scores ``(queries, corpus)``. SVMR searches the videos
    that hold a relevant moment, and ranks by the span alone. ``nms`` drops moments that overlap a better one of the
    same video by more. ``encoded`` spares encoding the corpus again; blocks and batches never change what is found.
    """
    if task not in TASKS:
        raise MomentseekError(f"there is no task {task!r}; tasks are {', '.join(TASKS)}")
    if k < 1:
        raise MomentseekError(f"{k} moments per query cannot be ranked; ask for 1 or more")
    if isinstance(split, str):
        split = cast(Split, cast(Any, data).split(split))
    truth, ids = split.truth, split.truth.query_ids
    if not ids:
        raise MomentseekError(f"{truth.source}: has no queries; nothing can be predicted")
    if task != "SVMR" and videos is None and not model.retrieves:
        raise MomentseekError("this model does not rank videos; give it another model's run with --videos")
    corpus = encoded
    if corpus is None:
        names = split.corpus if task != "SVMR" else _relevant(truth)
        corpus = encode_corpus(model, data, names, batch=batch, progress=progress)
    queries = encode_queries(model, split, ids, progress=progress)
    depth = k if task == "VR" else model.config.videos
    if task == "SVMR":
        candidates = from_truth(truth, ids, corpus.position)
    elif isinstance(videos, Run):
        candidates = from_run(videos, ids, corpus.position, depth)
    elif videos is not None:
        candidates = from_scores(videos, len(ids), len(corpus), depth)
    else:
        candidates = retrieve(model, queries, corpus, depth, cells=cells, progress=progress)
    if task == "VR":
        return _videos(candidates, corpus.names, truth)
    weight = 0.0 if task == "SVMR" else (model.config.alpha if alpha is None else alpha)
    clocks = Clocks(data, corpus.names, model.config, split.durations)
    wanted = k if nms is None else max(k, BEFORE)
    each = max(1, SPANS // max(1, candidates.video.shape[1] * wanted))
    found = []
    for first in range(0, len(ids), each):
        part = candidates.part(first, first + each)
        asked = np.arange(first, first + len(part))
        spans = spans_of(
            model,
            queries,
            corpus,
            asked,
            part.video,
            wanted,
            least=2 if end_time == "start" else 1,  # a span of one clip would have no length
            usable=clocks.usable,
            cells=cells,
            progress=progress,
        )
        found.append(ranked(spans, part, clocks, weight, k, nms, end_time))
        if progress is not None:
            progress("ranking", first + len(part), len(ids))
    return _moments(found, corpus.names, truth, task)


class Clocks:
    """When the clips of each video begin and end; none ends after its video."""

    def __init__(
        self, data: Searched, names: Sequence[str], config: ModelConfig, durations: Mapping[str, float]
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


Moments = tuple[IntArray, FloatArray, FloatArray, FloatArray]
"""Videos, starts, ends and scores, ``(queries, k)``; a score of minus infinity where there is none."""


def ranked(
    spans: Spans, candidates: Candidates, clocks: Clocks, alpha: float, k: int, nms: float | None, end_time: EndTime
) -> Moments:
    """The ``k`` best spans of each query's videos, as moments in seconds."""
    column, span, score = merge(spans.score, candidates.score, alpha, k if nms is None else max(k, BEFORE))
    rows = np.arange(len(candidates))[:, None]
    real = score > -np.inf
    video = np.where(real, candidates.video[rows, column], 0)
    first, last = (np.where(real, x[rows, column, span], 0).astype(np.int64) for x in (spans.first, spans.last))
    start, end = moments_of(first, last, clocks.edges, clocks.place[video], end_time)
    if nms is not None:
        kept = suppress(start, end, nms, video=video) & real
        order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
        score = np.where(kept, score, -np.inf)
        video = np.take_along_axis(video, order, axis=1)
        start, end, score = (np.take_along_axis(x, order, axis=1) for x in (start, end, score))
    return video, start, end, score


def _relevant(truth: Judgements) -> tuple[str, ...]:
    named = np.unique(truth.video[truth.relevance > 0])
    return tuple(truth.videos[i] for i in named)


def _videos(candidates: Candidates, names: Sequence[str], truth: Judgements) -> Run:
    zeros = np.zeros(candidates.score.shape)
    return _moments([(candidates.video, zeros, zeros, candidates.score)], names, truth, "VR")


def _moments(found: Sequence[Moments], names: Sequence[str], truth: Judgements, task: str) -> Run:
    """A Run, each query's rows in the order files are written in: by score, then video, start, end."""
    counts = np.concatenate([np.count_nonzero(score > -np.inf, axis=1) for *_, score in found])
    video, start, end, score = (np.concatenate([part[i][part[3] > -np.inf] for part in found]) for i in range(4))
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
    return run.ranked()
