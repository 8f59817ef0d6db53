"""Build the batches of training steps from the data; ``models.inputs`` prepares their features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from momentseek.measuring.formats.qvhighlights import CLIP_SECONDS as RATED_SECONDS
from momentseek.models.batch import Batch, BatchPairs
from momentseek.models.features.data import Data, DataSplit
from momentseek.models.features.store import ArrayCache
from momentseek.models.inputs import clips_of, pad_rows, tables, words_of
from momentseek.models.model import ModelConfig
from momentseek.models.training.config import TrainingSettings
from momentseek.models.training.negatives import HardNegatives, ListNegatives, NegativePairs
from momentseek.models.training.pairs import Ints, group_pairs, training_pairs
from momentseek.recognition.exported.preparation import EndLabel, edges, labels


class Batches:
    """Builds batches of chosen pairs, with a cache of features of up to ``cache_mb`` megabytes.

    With ``whole``, all moments of a query in a video are drawn together, with the saliency ratings of its clips.
    """

    def __init__(
        self, data: Data, split: DataSplit, config: ModelConfig, training: TrainingSettings, *, whole: bool = False
    ) -> None:
        self.pairs = training_pairs(split.truth, training.similarity, split.related)
        self.whole = whole
        self._groups = group_pairs(self.pairs) if whole else None
        self._data, self._split, self._config, self._training = data, split, config, training
        self.hard: HardNegatives | ListNegatives | None = None
        self._cache = ArrayCache(training.cache_mb)
        _ = tables(data, config)  # refuses data without the features that the model needs
        self._edges: dict[int, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}
        self._public = getattr(config, "seconds", None) == "duration"  # the labels of Moment-DETR's family

    @property
    def drawn_videos(self) -> Ints:
        """The video of each pair; with ``whole``, of each group of pairs that are drawn together."""
        return self.pairs.video if self._groups is None else self.pairs.video[[rows[0] for rows in self._groups]]

    @property
    def lengths(self) -> Ints:
        """Number of clips of each video in the truth."""
        return np.array([self._data.rows(name) for name in self._split.truth.videos])

    def queries(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield the text and the word features of every query, in the truth's order; no words are cut off."""
        prepare = self._config.preparation.prepare_words
        for query in self._split.truth.query_ids:
            yield self._split.truth.text(query) or "", prepare(self._split.query.read(query))

    def batch(self, chosen: Ints, rng: np.random.Generator | None = None) -> Batch:
        """Build the batch of some pairs, with their distinct queries and videos.

        If ``hard`` is set, it adds negatives drawn with ``rng``: videos and queries without pairs of their own.
        """
        if self._groups is not None:
            chosen = np.concatenate([self._groups[i] for i in chosen])
        queries, videos = np.unique(self.pairs.query[chosen]), np.unique(self.pairs.video[chosen])
        drawn: list[NegativePairs | None] = [None, None]
        if self.hard is not None:
            assert rng is not None, "hard negatives are drawn at random"
            drawn = [self.hard.videos_of(queries, rng), self.hard.queries_of(videos, rng)]
            for found in drawn:
                if found is not None:
                    queries, videos = np.union1d(queries, found.queries), np.union1d(videos, found.videos)
        if isinstance(self.hard, ListNegatives) and self.hard.total:
            chosen = self.pairs.among(queries, videos)  # a wrong video of one query may be right for another
        query = np.searchsorted(queries, self.pairs.query[chosen])
        video = np.searchsorted(videos, self.pairs.video[chosen])
        first, last, shares = self._labels(chosen)
        related = self.pairs.related_mask(queries, videos)
        columns = map(torch.from_numpy, (query, video, first, last, self.pairs.weight[chosen], related, shares))
        hard = [None if found is None else _pair_mask(found, queries, videos) for found in drawn]
        truth, config, cache = self._split.truth, self._config, self._cache
        return Batch(
            words_of(self._split, [truth.query_ids[q] for q in queries], config, cache),
            clips_of(self._data, [truth.videos[v] for v in videos], config, cache),
            BatchPairs(*columns, *hard, *([] if self._groups is None else [self._ratings(queries)])),
        )

    def _ratings(self, queries: Ints) -> Tensor | None:
        """(queries, clips, annotators): the ratings at the middle of each clip that the model sees."""
        truth = self._split.truth
        if truth.saliency is None:
            return None
        rows = []
        for query in queries.tolist():
            first, last = truth.saliency.offsets[query : query + 2]
            at = self._clip_edges(int(self.pairs.video[self.pairs.offsets[query]]))
            place = ((at[:-1] + at[1:]) / 2 // RATED_SECONDS).astype(np.int64)
            if self._public and self._data.clip_seconds == RATED_SECONDS:  # also clips after the last features
                place = np.union1d(place, np.arange(last - first))
            known = np.pad(
                truth.saliency.scores[first:last], ((0, max(0, int(place[-1]) + 1 - int(last - first))), (0, 0))
            )
            rows.append(known[place].astype(np.float32))
        return pad_rows(rows)[0]

    def _labels(self, chosen: Ints) -> tuple[Ints, Ints, np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
        first, last = np.empty(len(chosen), np.int64), np.empty(len(chosen), np.int64)
        how = cast(EndLabel, "whole" if self._public else self._training.end_label)
        seconds = np.empty(len(chosen))
        for video in np.unique(self.pairs.video[chosen]).tolist():
            own = np.flatnonzero(self.pairs.video[chosen] == video)
            at, rows = self._clip_edges(video), chosen[own]
            first[own], last[own] = labels(self.pairs.start[rows], self.pairs.end[rows], at, how)
            seconds[own] = at[-1]
        times = np.stack([self.pairs.start[chosen], self.pairs.end[chosen]], axis=1) / seconds[:, None]
        return first, last, (times if self._public else np.clip(times, 0, 1)).astype(np.float32)

    def _clip_edges(self, video: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        if video not in self._edges:
            name, config = self._split.truth.videos[video], self._config
            self._edges[video] = edges(
                self._data.rows(name),
                config.max_clips,
                config.fit,
                self._data.clip_seconds,
                float("nan") if self._public else self._split.durations.get(name, float("nan")),
            )
        return self._edges[video]


def _pair_mask(drawn: NegativePairs, queries: Ints, videos: Ints) -> Tensor:
    """(queries, videos): True for the drawn pairs."""
    mask = torch.zeros(len(queries), len(videos), dtype=torch.bool)
    mask[np.searchsorted(queries, drawn.queries), np.searchsorted(videos, drawn.videos)] = True
    return mask
