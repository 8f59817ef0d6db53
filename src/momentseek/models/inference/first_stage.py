"""First stage: choose the videos in which each query's moments are searched, by the model or another source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.ranking import Running, top_videos
from momentseek.models.inference.best_clips import LateVectors, rank_by_best_clips
from momentseek.models.inference.encode import EncodedCorpus, StageCallback, device_of, inference_mode, refuse_nan
from momentseek.models.model import CorpusModel

MAX_TENSOR_NUMBERS = 1 << 22
"""Maximum number of values in a temporary tensor (16 MB, the fastest size measured); a model makes a few of them."""
QUERIES_PER_MATCH = 512
"""Number of queries matched together with a block of videos."""


@dataclass(frozen=True, eq=False)
class RankedVideos:
    """The videos of each query, best first, as places in the corpus with scores; padded with -1."""

    video: IntArray
    score: FloatArray

    def __len__(self) -> int:
        return len(self.video)

    def of(self, queries: IntArray) -> RankedVideos:
        """The videos of some queries, given by their places."""
        return RankedVideos(self.video[queries], self.score[queries])


def retrieve(
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    n: int,
    *,
    cells: int = MAX_TENSOR_NUMBERS,
    progress: StageCallback | None = None,
) -> RankedVideos:
    """The ``n`` best videos of each query by the model's ``match``; ties go to the video first in the corpus.

    It matches blocks of videos of similar length with blocks of queries, and keeps the best ``n``. If a video's score
    is that of its best clips, and the corpus is large, bounds rule out most clips (`best_clips`).
    """
    if not model.retrieves:
        raise MomentseekError(f"this model does not rank videos; give another model's run ({parameter('videos')})")
    device = device_of(model)
    if device.type == "cpu" and (found := _retrieve_by_bounds(model, queries, corpus, n, progress)) is not None:
        return found
    # A block's encodings, and its scores for a block of queries, both have at most `cells` values.
    sizes = corpus.counts * max(corpus.width, min(QUERIES_PER_MATCH, len(queries))) + corpus.fixed
    parts = np.split(np.arange(len(queries)), range(QUERIES_PER_MATCH, len(queries), QUERIES_PER_MATCH))
    best = [Running(len(part), n) for part in parts]
    done = 0
    with inference_mode(model):
        for block in map(np.sort, like_sized_blocks(sizes, cells)):
            videos = corpus.take(block, device)
            for part, running in zip(parts, best, strict=True):
                scores = model.match(queries.take(part, device), videos).float().cpu().numpy()
                refuse_nan(scores)
                running.add(scores, block)
                done += scores.size
                if progress is not None:
                    progress("first stage", done, len(queries) * len(corpus))
    return RankedVideos(np.concatenate([r.video for r in best]), np.concatenate([r.score for r in best]))


def _retrieve_by_bounds(
    model: CorpusModel, queries: EncodedCorpus, corpus: EncodedCorpus, n: int, progress: StageCallback | None
) -> RankedVideos | None:
    """Retrieve videos by bounds; None if these do not apply or do not pay."""
    names = model.best_clip_parts
    if not names or not corpus.has_rows_of_clips or not corpus.values["mask"].all():
        return None
    vectors = [LateVectors(np.ascontiguousarray(queries.values[m], np.float32), corpus.values[m]) for m in names]
    report = None if progress is None else partial(progress, "first stage")
    found = rank_by_best_clips(vectors, corpus.offsets["mask"], n, report)
    if found is None:
        return None
    refuse_nan(found[1])
    return RankedVideos(found[0], found[1].astype(np.float64))


def like_sized_blocks(sizes: IntArray, cells: int) -> Iterator[IntArray]:
    """Yield blocks of items of similar size, smallest first; a block padded to its largest item has at most ``cells``.

    >>> [block.tolist() for block in like_sized_blocks(np.array([5, 1, 4, 1]), 10)]
    [[1, 3], [2, 0]]
    """
    order = np.argsort(sizes, kind="stable")
    rising = sizes[order].tolist()
    first = 0
    for last in range(1, len(order) + 1):
        if last == len(order) or (last + 1 - first) * rising[last] > cells:
            yield order[first:last]
            first = last


def from_scores(
    scores: NDArray[Any], queries: int, videos: int, n: int, inside: BoolArray | None = None
) -> RankedVideos:
    """The ``n`` best videos by given scores ``(queries, videos)``; minus infinity leaves a video out.

    ``inside``, of the same shape, limits them to the query's pool.
    """
    if np.shape(scores) != (queries, videos):
        raise MomentseekError(f"scores of videos have the shape {np.shape(scores)}; needed is {(queries, videos)}")
    if np.isnan(scores).any():
        raise MomentseekError("scores of videos must be numbers; minus infinity leaves a video out")
    place, best = top_videos(scores if inside is None else np.where(inside, scores, -np.inf), n)
    return RankedVideos(place, best.astype(np.float64))


def from_run(
    run: Run, query_ids: Sequence[str], position: Mapping[str, int], n: int, inside: BoolArray | None = None
) -> RankedVideos:
    """The first ``n`` distinct videos of each query's ranked moments; a video's score is that of its first moment.

    ``inside``, (queries, videos), limits them to the query's pool.
    """
    places = np.array([position.get(name, -1) for name in run.videos], dtype=np.int64)
    found = []
    for i, query in enumerate(query_ids):
        if query not in run:
            raise MomentseekError(f"{run.source}: has no videos for query {query}; make the list for this split")
        rows = run.rows(query)
        video, first = np.unique(run.video[rows], return_index=True)
        order = np.argsort(first, kind="stable")
        if inside is not None:
            place = places[video[order]]
            order = order[(place >= 0) & inside[i, place]]
        order = order[:n]
        video = video[order]
        if (places[video] < 0).any():
            name = run.videos[video[places[video] < 0][0]]
            raise MomentseekError(f"{run.source}: video {name} is not in the corpus searched; use the split's own list")
        found.append((places[video], run.score[rows][first[order]]))
    if inside is not None and not any(len(v) for v, _ in found):
        raise MomentseekError(f"{run.source}: names no video of any query's pool; make the list for this split")
    return stack_lists(found)


def from_truth(truth: Judgements, query_ids: Sequence[str], position: Mapping[str, int]) -> RankedVideos:
    """The videos with a relevant moment of each query, for moment retrieval in a known video (SVMR)."""
    places = np.array([position.get(name, -1) for name in truth.videos], dtype=np.int64)
    found = []
    for query in query_ids:
        rows = truth.rows(query)
        video = dict.fromkeys(places[truth.video[rows][truth.relevance[rows] > 0]].tolist())
        if -1 in video:
            raise MomentseekError(
                f"{truth.source}: a video of query {query} was not encoded; encode all that are judged"
            )
        found.append((np.array(list(video), dtype=np.int64), np.zeros(len(video))))
    return stack_lists(found)


def stack_lists(found: Sequence[tuple[IntArray, FloatArray]]) -> RankedVideos:
    """Stack lists of videos and scores, one per query, into a table padded with -1."""
    most = max((len(v) for v, _ in found), default=0)
    video = np.full((len(found), most), -1, dtype=np.int64)
    score = np.full((len(found), most), -np.inf)
    for i, (v, s) in enumerate(found):
        video[i, : len(v)], score[i, : len(v)] = v, s
    return RankedVideos(video, score)


def pool_videos(truth: Judgements) -> tuple[str, ...]:
    """All distinct videos of the pools, in the truth's order."""
    assert truth.pools is not None
    return tuple(truth.videos[i] for i in np.unique(truth.pools.video).tolist())


def from_pools(truth: Judgements, position: Mapping[str, int]) -> RankedVideos:
    """The distinct videos of every query's pool, in the order of the corpus, with scores of 0."""
    assert truth.pools is not None
    places = np.array([position.get(name, -1) for name in truth.videos], dtype=np.int64)
    missing = truth.pools.video[places[truth.pools.video] < 0]
    if len(missing):
        name = truth.videos[missing[0]]
        raise MomentseekError(f"{truth.source}: video {name} of a pool was not encoded; encode all pools' videos")
    pools = np.split(places[truth.pools.video], truth.pools.offsets[1:-1])
    return stack_lists([(np.unique(pool), np.zeros(len(np.unique(pool)))) for pool in pools])


def membership(pools: RankedVideos, videos: int) -> BoolArray:
    """(queries, videos): whether a video is in a query's pool."""
    inside = np.zeros((len(pools), videos), dtype=bool)
    row, column = np.nonzero(pools.video >= 0)
    inside[row, pools.video[row, column]] = True
    return inside


def match_pools(
    model: CorpusModel,
    queries: EncodedCorpus,
    corpus: EncodedCorpus,
    pools: RankedVideos,
    progress: StageCallback | None = None,
) -> RankedVideos:
    """Score the videos of the pools with the model's ``match``; pairs outside the pools are not computed."""
    device = device_of(model)
    score = np.full(pools.video.shape, -np.inf)
    row, column = np.nonzero(pools.video >= 0)
    order = np.argsort(pools.video[row, column], kind="stable")
    row, column = row[order], column[order]
    video = pools.video[row, column]
    done = 0
    with inference_mode(model):
        for group in np.split(np.arange(len(row)), np.flatnonzero(np.diff(video)) + 1):
            here = corpus.take(video[group[:1]], device)
            for part in np.split(group, range(QUERIES_PER_MATCH, len(group), QUERIES_PER_MATCH)):
                found = model.match(queries.take(row[part], device), here)[:, 0].float().cpu().numpy()
                refuse_nan(found)
                score[row[part], column[part]] = found
            done += len(group)
            if progress is not None:
                progress("first stage", done, len(row))
    return RankedVideos(pools.video, score)


def best_videos(pools: RankedVideos, n: int) -> RankedVideos:
    """The ``n`` best-scored videos of each query, best first; ties go to the video first in the corpus."""
    order = np.lexsort((pools.video, -pools.score), axis=-1)[:, :n]
    return RankedVideos(np.take_along_axis(pools.video, order, 1), np.take_along_axis(pools.score, order, 1))
