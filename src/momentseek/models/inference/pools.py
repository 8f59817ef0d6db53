"""Pools: where a truth says which videos each query is to be searched in (MVMR), only these are searched.

A pool is small, so every video of it is searched and no first stage is needed: models that meet query and video early
(2D-TAN, CET) search it as well as those that rank videos.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.models.inference.encode import StageCallback, device_of, inference_mode
from momentseek.models.inference.first_stage import QUERIES_PER_MATCH, RankedVideos, stack_lists
from momentseek.models.inference.ragged import EncodedCorpus
from momentseek.models.model import CorpusModel
from momentseek.moments import Judgements
from momentseek.moments.arrays import BoolArray


def pool_videos(truth: Judgements) -> tuple[str, ...]:
    """All videos that are in a pool, each once, in the truth's order."""
    assert truth.pools is not None
    return tuple(truth.videos[i] for i in np.unique(truth.pools.video).tolist())


def from_pools(truth: Judgements, position: Mapping[str, int]) -> RankedVideos:
    """The videos of every query's pool, each once and in the order of the corpus, with scores of 0."""
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
    """The videos of the pools with the model's ``match`` as scores; pairs outside the pools cost nothing."""
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
                if np.isnan(found).any():
                    raise MomentseekError("the model's scores are no numbers; its training has diverged")
                score[row[part], column[part]] = found
            done += len(group)
            if progress is not None:
                progress("first stage", done, len(row))
    return RankedVideos(pools.video, score)


def best_videos(pools: RankedVideos, n: int) -> RankedVideos:
    """The ``n`` videos of each query that score best, best first; ties go to the video first in the corpus."""
    order = np.lexsort((pools.video, -pools.score), axis=-1)[:, :n]
    return RankedVideos(np.take_along_axis(pools.video, order, 1), np.take_along_axis(pools.score, order, 1))
