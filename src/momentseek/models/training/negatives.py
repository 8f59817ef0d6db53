"""Negatives from outside the batch: hard negatives by a trained model's scores, and videos of a first stage's lists."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import read_run
from momentseek.models.features.data import Data, DataSplit
from momentseek.models.inference.encode import device_of, encode_corpus, encode_queries, inference_mode
from momentseek.models.inference.first_stage import MAX_TENSOR_NUMBERS, retrieve
from momentseek.models.model import CorpusModel
from momentseek.models.training.checkpoint import load_checkpoint, refuse_other_dims
from momentseek.models.training.config import TrainConfig, TrainingSettings
from momentseek.models.training.folder import is_checkpoint
from momentseek.models.training.pairs import TrainingPairs

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

SCORE_SCALE = 65534
"""The stored value of a score of 1: 16 bits hold scores from 0 to 1 to within 1/130,000."""
NEVER_DRAWN = 65535
"""The stored value of true or related pairs, which are never drawn."""
ScoringCallback = Callable[[int, int], None]
"""Called with the number of finished scores and their total; it may raise to stop."""
VIDEOS_PER_BLOCK = 64
"""Number of videos encoded together."""
MAX_SCORE_BYTES_IN_MEMORY = 1 << 30
"""Maximum size of the scores in memory, in bytes; larger ones go to a temporary file."""


def logits(scores: Floats, aim: Floats, allowed: Bools, sharpness: float = 1.0, pool: int = 0) -> Floats:
    """The logits of a draw, (rows, columns): ``-sharpness * (score - aim)²``, and minus infinity where not allowed.

    With ``pool``, only that many best-scored allowed columns of each row can be drawn.

    >>> scores, allowed = np.array([[0.5, 0.75, 0.0]]), np.array([[False, True, True]])
    >>> logits(scores, np.array([0.5]), allowed, sharpness=8).tolist()
    [[-inf, -0.5, -2.0]]
    """
    if 0 < pool < scores.shape[1]:
        held = np.where(allowed, scores, -np.inf)
        least = np.partition(held, -pool, axis=1)[:, -pool][:, None]
        allowed = allowed & (held >= least)
    return np.where(allowed, -sharpness * (scores - aim[:, None]) ** 2, -np.inf)


def draw(logits: Floats, count: int, rng: np.random.Generator) -> list[Ints]:
    """Draw up to ``count`` different columns of each row with weights ``exp(logits)``, in rising order.

    It takes the largest sums of logits and Gumbel noise, which is the same as drawing one after another.
    """
    drawn = rng.standard_exponential(logits.shape, dtype=np.float32)
    keys = logits - np.log(np.maximum(drawn, np.float32(1e-30)))
    count = min(count, keys.shape[1])
    best = np.argpartition(-keys, count - 1, axis=1)[:, :count]
    return [np.sort(row[np.isfinite(logits[i, row])]) for i, row in enumerate(best)]


@dataclass(frozen=True, eq=False)
class NegativePairs:
    """The negatives of a step: pairs of a query and a video, as places in the truth."""

    queries: Ints
    videos: Ints

    def __iter__(self) -> Iterator[Ints]:
        return iter((self.queries, self.videos))


class HardNegatives:
    """Draws hard negatives by the scores of all training queries and videos."""

    def __init__(
        self, kept: NDArray[np.uint16], query_aim: Floats, video_aim: Floats, *, videos: int, queries: int,
        sharpness: float = 1.0, pool: int = 0,
    ) -> None:  # fmt: skip
        """``kept`` (queries, videos) has scores times ``SCORE_SCALE``, or ``NEVER_DRAWN``.

        ``query_aim`` and ``video_aim`` have the mean score of the true pairs of each query and video.
        """
        self.kept, self.query_aim, self.video_aim = kept, query_aim, video_aim
        self.videos, self.queries = videos, queries
        self.sharpness, self.pool = sharpness, pool

    def videos_of(self, queries: Ints, rng: np.random.Generator) -> NegativePairs | None:
        """Draw ``self.videos`` hard negative videos for each of these queries; None if that is 0."""
        if not self.videos:
            return None
        found = self._draw(self.kept[queries], self.query_aim[queries], self.videos, rng)
        return NegativePairs(np.repeat(queries, [len(f) for f in found]), np.concatenate(found))

    def queries_of(self, videos: Ints, rng: np.random.Generator) -> NegativePairs | None:
        """Draw ``self.queries`` hard negative queries for each of these videos; None if that is 0."""
        if not self.queries:
            return None
        found = self._draw(self.kept[:, videos].T, self.video_aim[videos], self.queries, rng)
        return NegativePairs(np.concatenate(found), np.repeat(videos, [len(f) for f in found]))

    def _draw(self, kept: NDArray[np.uint16], aim: Floats, count: int, rng: np.random.Generator) -> list[Ints]:
        scores = kept.astype(np.float32) / np.float32(SCORE_SCALE)
        return draw(logits(scores, aim, kept != NEVER_DRAWN, self.sharpness, self.pool), count, rng)


class ListNegatives:
    """Draws wrong videos for each training query from its ``allowed`` ones.

    With ``total``, a step has at most this many of them, and its batch has all pairs of its queries and videos.
    """

    def __init__(self, allowed: Sequence[NDArray[np.int32]], count: int, total: int = 0) -> None:
        self.allowed, self.count, self.total = allowed, count, total

    def videos_of(self, queries: Ints, rng: np.random.Generator) -> NegativePairs | None:
        """Draw up to ``self.count`` different wrong videos for each of these queries."""
        drawn = [rng.permutation(self.allowed[q])[: self.count] for q in queries.tolist()]
        asked = np.repeat(queries, [len(d) for d in drawn])
        videos = np.concatenate(drawn).astype(np.int64)
        if self.total:
            kept = np.isin(videos, rng.permutation(np.unique(videos))[: self.total])
            asked, videos = asked[kept], videos[kept]
        return NegativePairs(asked, videos)

    def queries_of(self, videos: Ints, rng: np.random.Generator) -> NegativePairs | None:
        """Return None: lists give videos only."""
        return None


def check_lists(config: TrainConfig, model: CorpusModel) -> None:
    """Refuse a model that learns from a first stage's lists if the config names no source of them."""
    own = "draw them from the batch (negatives_from=batch)"
    if model.listed_negatives and list_source(config) is None:
        raise MomentseekError(
            f"{config.model} draws wrong videos from a first stage's lists; name its checkpoint, or a run for the "
            f"training queries (lists=PATH), or {'mine none (mined=0)' if model.mined_videos else own}"
        )


def list_source(config: TrainConfig) -> str | None:
    """The checkpoint or run whose lists wrong videos are drawn from: ``lists``, else the first stage."""
    return config.data.lists or config.data.first_stage


def read_lists(
    config: TrainConfig, model: CorpusModel, data: Data, pairs: TrainingPairs, progress: ScoringCallback
) -> ListNegatives | None:
    """Read or compute the lists that wrong videos are drawn from; None for a model that uses no lists."""
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
    return ListNegatives(allowed_videos(ranked, pairs, reach), model.listed_negatives, model.mined_videos)


def allowed_videos(lists: Sequence[Ints], pairs: TrainingPairs, reach: int) -> list[NDArray[np.int32]]:
    """The wrong videos of each query's list, down to ``reach`` ranks below the last right video in it.

    >>> from momentseek import Judgements
    >>> from momentseek.models.training.pairs import training_pairs
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
    """The distinct videos of each training query in a run, in its order, without those that have no training moment."""
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


def _rank(source: str, data: Data, split: DataSplit, name: str, most: int, progress: ScoringCallback) -> list[Ints]:
    """The ranked videos of each training query by a checkpoint's model, among videos with training moments."""
    trained = load_checkpoint(source)
    refuse_other_dims(trained, data, name, source)
    if not trained.model.retrieves:
        raise MomentseekError(
            f"{source}: {trained.config.model} ranks no videos; name a model that does, such as xml, or a run"
        )

    def encoding(stage: str, done: int, total: int) -> None:
        progress(0, 1)  # no progress yet, but the callback may stop the encoding

    def ranking(stage: str, done: int, total: int) -> None:
        progress(done, total)

    truth = split.truth
    corpus = encode_corpus(trained.model, data, truth.videos, progress=encoding)
    asked = encode_queries(trained.model, split, truth.query_ids, progress=encoding)
    found = retrieve(trained.model, asked, corpus, most, progress=ranking)
    return [row[row >= 0] for row in found.video]


def score_hard_negatives(
    model: CorpusModel,
    data: Data,
    split: DataSplit,
    pairs: TrainingPairs,
    training: TrainingSettings,
    progress: ScoringCallback,
) -> HardNegatives:
    """Score every training query against every video with ``model``; ``progress`` may raise to stop."""
    shape = (len(split.truth.query_ids), pairs.videos)
    kept, own = _allocate(shape), _TrueScores(pairs)
    for videos, scores in _score_blocks(model, data, split, progress):
        if not np.isfinite(scores).all():
            raise MomentseekError(
                "scores of the model to begin from are NaN or infinite; begin from another checkpoint"
            )
        own.add(videos, scores)
        never = pairs.related_mask(np.arange(shape[0]), videos)
        kept[:, videos] = np.where(never, NEVER_DRAWN, np.rint(scores * SCORE_SCALE)).astype(np.uint16)
    return HardNegatives(
        kept, *own.aims(), videos=training.hard_videos, queries=training.hard_queries, sharpness=training.sharpness,
        pool=training.hard_pool,
    )  # fmt: skip


def _score_blocks(
    model: CorpusModel, data: Data, split: DataSplit, progress: ScoringCallback
) -> Iterator[tuple[Ints, NDArray[np.float32]]]:
    """Yield blocks of videos with the scores of all queries."""
    truth, device = split.truth, device_of(model)
    total = len(truth.query_ids) * len(truth.videos)
    done = 0

    def encoding(stage: str, at: int, of: int) -> None:
        progress(done, total)  # no progress yet, but the callback may stop the encoding

    asked = encode_queries(model, split, truth.query_ids, progress=encoding)
    for first in range(0, len(truth.videos), VIDEOS_PER_BLOCK):
        block = np.arange(first, min(first + VIDEOS_PER_BLOCK, len(truth.videos)))
        corpus = encode_corpus(model, data, [truth.videos[v] for v in block], progress=encoding)
        scores = np.empty((len(asked), len(block)), np.float32)
        with inference_mode(model):
            videos = corpus.take(block - first, device)
            moments = max(t.shape[0] * t.shape[1] for t in videos.values() if t.ndim > 1)
            chunk = max(1, MAX_TENSOR_NUMBERS // moments)  # limits the tensor (queries, videos, moments)
            for q in range(0, len(asked), chunk):
                queries = asked.take(np.arange(q, min(q + chunk, len(asked))), device)
                scores[q : q + chunk] = model.match(queries, videos).float().exp().cpu().numpy()
                done += len(scores[q : q + chunk]) * len(block)
                progress(done, total)
        yield block, scores.clip(0.0, 1.0)


class _TrueScores:
    """Mean score of the true pairs of each query and of each video, gathered block by block."""

    def __init__(self, pairs: TrainingPairs) -> None:
        true = np.unique(np.stack([pairs.video, pairs.query], axis=1), axis=0)
        self._video, self._query = true[:, 0], true[:, 1]
        self._queries, self._videos = len(pairs.offsets) - 1, pairs.videos
        self._scores = np.zeros(len(true))
        self._best = np.zeros(self._queries), np.zeros(self._videos)

    def add(self, videos: Ints, scores: NDArray[np.float32]) -> None:
        """Add the scores of all queries for a block of consecutive videos."""
        first, last = np.searchsorted(self._video, [videos[0], videos[-1] + 1])
        here = slice(first, last)
        self._scores[here] = scores[self._query[here], self._video[here] - videos[0]]
        np.maximum(self._best[0], scores.max(1), out=self._best[0])
        self._best[1][videos] = scores.max(0)

    def aims(self) -> tuple[Floats, Floats]:
        """The mean score of the true pairs of each query and of each video; without true pairs, the highest score."""
        found = []
        for code, size, best in zip((self._query, self._video), (self._queries, self._videos), self._best, strict=True):
            count = np.bincount(code, minlength=size)
            mean = np.bincount(code, self._scores, size) / np.maximum(count, 1)
            found.append(np.where(count, mean, best).astype(np.float32))
        return found[0], found[1]


def _allocate(shape: tuple[int, int]) -> NDArray[np.uint16]:
    if 2 * shape[0] * shape[1] <= MAX_SCORE_BYTES_IN_MEMORY:
        return np.empty(shape, np.uint16)
    try:
        with tempfile.TemporaryFile() as file:  # the mapping stays valid after the file is closed
            return np.memmap(file, np.uint16, "w+", shape=shape)
    except OSError as e:
        size = 2 * shape[0] * shape[1] / 1e9
        raise MomentseekError(
            f"the scores of {shape[0]:,} queries and {shape[1]:,} videos need {size:.1f} GB of temporary space"
            f" ({e.strerror}); set TMPDIR to a larger disk"
        ) from None
