"""Scores of every training query and video by a trained model, by which hard negatives are drawn.

``r(q, v)`` is the best moment's score (CroCs, section 6.2): models of MMN's family ``match`` by its logarithm, so here
it is exp(match), from 0 to 1. Videos pass by in blocks that are encoded, matched with all queries and forgotten; what
stays is 16 bits per pair, 130 MB for Charades-STA (12,408 queries, 5,338 videos) and 750 MB for ActivityNet Captions;
once it is over ``MAX_SCORE_BYTES_IN_MEMORY``, in a mapped file without a name.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.features.data import Data, DataSplit
from momentseek.models import CorpusModel
from momentseek.models.inference import encode_corpus, encode_queries
from momentseek.models.inference.encode import device_of, inference_mode
from momentseek.models.inference.first_stage import MAX_TENSOR_NUMBERS
from momentseek.training.config import TrainingSettings
from momentseek.training.hard_negatives import NEVER_DRAWN, SCORE_SCALE, Floats, HardNegatives, Ints
from momentseek.training.pairs import TrainingPairs

VIDEOS_PER_BLOCK = 64
"""Videos that are encoded at once."""
MAX_SCORE_BYTES_IN_MEMORY = 1 << 30
"""Bytes of scores that are held in memory; more go to a temporary file."""

ScoringCallback = Callable[[int, int], None]
"""Called with the number of scores that are done, and of all."""


def score_hard_negatives(
    model: CorpusModel,
    data: Data,
    split: DataSplit,
    pairs: TrainingPairs,
    training: TrainingSettings,
    progress: ScoringCallback,
) -> HardNegatives:
    """Score every training query with every video by ``model``; ``progress`` may raise to stop."""
    shape = (len(split.truth.query_ids), pairs.videos)
    kept, own = _allocate(shape), _TrueScores(pairs)
    for videos, scores in _score_blocks(model, data, split, progress):
        if not np.isfinite(scores).all():
            raise MomentseekError("the scores of the model to begin from are no numbers; begin from another checkpoint")
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
    """Blocks of videos, each with the scores of all queries."""
    truth, device = split.truth, device_of(model)
    total = len(truth.query_ids) * len(truth.videos)
    done = 0

    def encoding(stage: str, at: int, of: int) -> None:
        progress(done, total)  # encoding counts for nothing, but may be stopped too

    asked = encode_queries(model, split, truth.query_ids, progress=encoding)
    for first in range(0, len(truth.videos), VIDEOS_PER_BLOCK):
        block = np.arange(first, min(first + VIDEOS_PER_BLOCK, len(truth.videos)))
        corpus = encode_corpus(model, data, [truth.videos[v] for v in block], progress=encoding)
        scores = np.empty((len(asked), len(block)), np.float32)
        with inference_mode(model):
            videos = corpus.take(block - first, device)
            moments = max(t.shape[0] * t.shape[1] for t in videos.values() if t.ndim > 1)
            many = max(
                1, MAX_TENSOR_NUMBERS // moments
            )  # queries at once: (queries, videos, moments) stays within the cells
            for q in range(0, len(asked), many):
                queries = asked.take(np.arange(q, min(q + many, len(asked))), device)
                scores[q : q + many] = model.match(queries, videos).float().exp().cpu().numpy()
                done += len(scores[q : q + many]) * len(block)
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
        """Take in the scores of all queries with a block of consecutive videos."""
        first, last = np.searchsorted(self._video, [videos[0], videos[-1] + 1])
        here = slice(first, last)
        self._scores[here] = scores[self._query[here], self._video[here] - videos[0]]
        np.maximum(self._best[0], scores.max(1), out=self._best[0])
        self._best[1][videos] = scores.max(0)

    def aims(self) -> tuple[Floats, Floats]:
        """The mean true score of each query and of each video; the highest score where there is no true pair."""
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
        with tempfile.TemporaryFile() as file:  # mapped files live on without their name
            return np.memmap(file, np.uint16, "w+", shape=shape)
    except OSError as e:
        size = 2 * shape[0] * shape[1] / 1e9
        raise MomentseekError(
            f"the scores of {shape[0]:,} queries and {shape[1]:,} videos need {size:.1f} GB of temporary space"
            f"  ({e.strerror}); set TMPDIR to a larger disk"
        ) from None
