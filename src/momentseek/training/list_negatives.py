"""Wrong videos from a first stage's lists: those that rank where the right one does (CONQUER, section 3.5).

A second stage sees nothing but what a first stage found, so it learns to tell the right video from others of the same
list. A query's wrong videos are drawn evenly from its list, down to ``list_reach`` places below its right video; those
that the training set calls related are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.features.data import Data, DataSplit
from momentseek.formats import read_run
from momentseek.models import CorpusModel
from momentseek.models.inference import encode_corpus, encode_queries, retrieve
from momentseek.moments import Run
from momentseek.training.checkpoint import load_checkpoint, refuse_other_dims
from momentseek.training.config import TrainConfig
from momentseek.training.folder import is_checkpoint
from momentseek.training.hard_negatives import Ints, NegativePairs
from momentseek.training.pairs import TrainingPairs

ListCallback = Callable[[int, int], None]
"""Called with how much of the lists is done, and of all; it may raise to stop."""


class ListNegatives:
    """The videos that may be drawn as wrong ones of each training query, and the draw."""

    def __init__(self, allowed: Sequence[NDArray[np.int32]], count: int) -> None:
        self.allowed, self.count = allowed, count

    def videos_of(self, queries: Ints, rng: np.random.Generator) -> NegativePairs | None:
        """Up to ``count`` wrong videos of each of these queries, all different."""
        drawn = [rng.permutation(self.allowed[q])[: self.count] for q in queries.tolist()]
        return NegativePairs(np.repeat(queries, [len(d) for d in drawn]), np.concatenate(drawn).astype(np.int64))

    def queries_of(self, videos: Ints, rng: np.random.Generator) -> NegativePairs | None:
        """None: only videos are drawn from lists."""
        return None


def check_lists(config: TrainConfig, model: CorpusModel) -> None:
    """Refuse a model that learns from a first stage's lists where there is none."""
    if model.listed_negatives and list_source(config) is None:
        raise MomentseekError(
            f"{config.model} draws wrong videos from a first stage's lists; name its checkpoint, or a run for the "
            "training queries (lists=PATH), or draw them from the batch (negatives_from=batch)"
        )


def list_source(config: TrainConfig) -> str | None:
    """The checkpoint or run whose lists wrong videos are drawn from: ``lists``, else the first stage."""
    return config.data.lists or config.data.first_stage


def read_lists(
    config: TrainConfig, model: CorpusModel, data: Data, pairs: TrainingPairs, progress: ListCallback
) -> ListNegatives | None:
    """What may be drawn for each training query; None for a model that draws nothing from lists."""
    source, reach = list_source(config), config.training.list_reach
    if not model.listed_negatives or source is None:
        return None
    split = data.split(config.data.train)
    most = min(pairs.videos, 2 * reach)
    ranked = (
        _rank(source, data, split, config.data.train, most, progress)
        if is_checkpoint(Path(source))
        else lists_of_run(read_run(Path(source)), split, config.data.train)
    )
    return ListNegatives(allowed_videos(ranked, pairs, reach), model.listed_negatives)


def allowed_videos(lists: Sequence[Ints], pairs: TrainingPairs, reach: int) -> list[NDArray[np.int32]]:
    """The wrong videos of each query's list, down to ``reach`` places below the last right one that is listed.

    >>> from momentseek.moments import Judgements
    >>> from momentseek.training.pairs import training_pairs
    >>> pairs = training_pairs(Judgements.from_rows([("q", "b", 0, 5, 1), ("r", "a", 0, 5, 1), ("r", "c", 0, 5, 1)]))
    >>> [wrong.tolist() for wrong in allowed_videos([np.array([1, 0, 2]), np.array([0, 1, 2])], pairs, 1)]
    [[1, 2], [0]]
    """
    kept = []
    for query, ranked in enumerate(lists):
        right = pairs.video[pairs.offsets[query] : pairs.offsets[query + 1]]
        right = np.concatenate([right, pairs.also.get(query, np.empty(0, np.int64))])
        is_right = np.isin(ranked, right)
        place = int(np.flatnonzero(is_right)[-1]) if is_right.any() else 0
        near = slice(0, place + 1 + reach)
        kept.append(ranked[near][~is_right[near]].astype(np.int32))
    return kept


def lists_of_run(run: Run, split: DataSplit, name: str) -> list[Ints]:
    """The videos of each training query of a run, each once, in its order; those of no training moment are left out."""
    truth = split.truth
    codes = np.array([truth.video_code.get(video, -1) for video in run.videos], dtype=np.int64)
    lists = []
    for query in truth.query_ids:
        if query not in run:
            raise MomentseekError(
                f"{run.source}: says nothing of query {query} of split {name}, whose wrong videos it should list; give "
                "a run for the training queries or a checkpoint (lists=PATH), or draw them from the batch "
                "(negatives_from=batch)"
            )
        found = codes[run.video[run.rows(query)]]
        lists.append(np.array(list(dict.fromkeys(found[found >= 0].tolist())), dtype=np.int64))
    return lists


def _rank(source: str, data: Data, split: DataSplit, name: str, most: int, progress: ListCallback) -> list[Ints]:
    """Lists of the model of a checkpoint: the videos that have training moments, best first."""
    trained = load_checkpoint(source)
    refuse_other_dims(trained, data, name, source)
    if not trained.model.retrieves:
        raise MomentseekError(
            f"{source}: {trained.config.model} ranks no videos; name a model that does, such as xml, or a run"
        )

    def encoding(stage: str, done: int, total: int) -> None:
        progress(0, 1)  # encoding counts for nothing, but may be stopped too

    def ranking(stage: str, done: int, total: int) -> None:
        progress(done, total)

    truth = split.truth
    corpus = encode_corpus(trained.model, data, truth.videos, progress=encoding)
    asked = encode_queries(trained.model, split, truth.query_ids, progress=encoding)
    found = retrieve(trained.model, asked, corpus, most, progress=ranking)
    return [row[row >= 0] for row in found.video]
