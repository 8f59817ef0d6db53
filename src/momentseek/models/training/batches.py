"""A training step's input from the data; ``models.inputs`` prepares features, for training and searching alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from momentseek.models.batch import Batch, BatchPairs, Clips, Words
from momentseek.models.features.data import Data, DataSplit
from momentseek.models.features.store import ArrayCache
from momentseek.models.inputs import (
    all_word_rows,
    clip_rows,
    needs_roles,
    needs_text,
    role_parser,
    stack_clips,
    stack_words,
    tables,
    word_ids,
    word_rows,
)
from momentseek.models.model import ModelConfig
from momentseek.models.training.config import TrainingSettings
from momentseek.models.training.negatives import HardNegatives, ListNegatives, NegativePairs
from momentseek.models.training.pairs import Ints, training_pairs
from momentseek.recognition.exported.preparation import MODALITIES, EndLabel, edges, labels


class Batches:
    """Makes batches of chosen pairs; recently read features are kept in memory, up to ``cache_mb``."""

    def __init__(self, data: Data, split: DataSplit, config: ModelConfig, training: TrainingSettings) -> None:
        self.pairs = training_pairs(split.truth, training.similarity, split.related)
        self._data, self._split, self._config, self._training = data, split, config, training
        self.hard: HardNegatives | ListNegatives | None = None
        self._cache = ArrayCache(training.cache_mb)
        self._tables = tables(data, config)
        self._roles = needs_roles(config)
        self._counts: dict[str, int] = {}  # words of each query read, before it was cut
        self._edges: dict[int, np.ndarray[tuple[int], np.dtype[np.float64]]] = {}

    @property
    def lengths(self) -> Ints:
        """Number of clips of each video of the truth."""
        return np.array([self._data.rows(name) for name in self._split.truth.videos])

    def queries(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Text and word features of every query, in the truth's order; all words, so that each row has its word."""
        for query in self._split.truth.query_ids:
            yield self._split.truth.text(query) or "", all_word_rows(self._split.query.read(query), self._config)

    def batch(self, chosen: Ints, rng: np.random.Generator | None = None) -> Batch:
        """The batch of these pairs: their distinct queries and videos, and the pairs among them.

        Where ``hard`` is set, hard negatives drawn with ``rng`` come along: videos that bring clips but no pairs, and
        queries that bring words but no pairs.
        """
        queries, videos = np.unique(self.pairs.query[chosen]), np.unique(self.pairs.video[chosen])
        drawn: list[NegativePairs | None] = [None, None]
        if self.hard is not None:
            assert rng is not None, "hard negatives are drawn at random"
            drawn = [self.hard.videos_of(queries, rng), self.hard.queries_of(videos, rng)]
            for found in drawn:
                if found is not None:
                    queries, videos = np.union1d(queries, found.queries), np.union1d(videos, found.videos)
        query, video = (np.searchsorted(queries, self.pairs.query[chosen]),
                        np.searchsorted(videos, self.pairs.video[chosen]))  # fmt: skip
        first, last, shares = self._labels(chosen)
        return Batch(
            self._words(queries),
            self._clips(videos),
            BatchPairs(
                torch.from_numpy(query),
                torch.from_numpy(video),
                torch.from_numpy(first),
                torch.from_numpy(last),
                torch.from_numpy(self.pairs.weight[chosen]),
                torch.from_numpy(self.pairs.related_mask(queries, videos)),
                torch.from_numpy(shares),
                *(None if found is None else _pair_mask(found, queries, videos) for found in drawn),
            ),
        )

    def _labels(self, chosen: Ints) -> tuple[Ints, Ints, np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
        first, last = np.empty(len(chosen), np.int64), np.empty(len(chosen), np.int64)
        how = cast(EndLabel, self._training.end_label)
        seconds = np.empty(len(chosen))
        for i, pair in enumerate(chosen):
            at, span = self._clip_edges(int(self.pairs.video[pair])), slice(pair, pair + 1)
            s, e = labels(self.pairs.start[span], self.pairs.end[span], at, how)
            first[i], last[i], seconds[i] = s[0], e[0], at[-1]
        times = np.stack([self.pairs.start[chosen], self.pairs.end[chosen]], axis=1) / seconds[:, None]
        return first, last, np.clip(times, 0, 1).astype(np.float32)

    def _clip_edges(self, video: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        if video not in self._edges:
            name, config = self._split.truth.videos[video], self._config
            self._edges[video] = edges(
                self._data.rows(name),
                config.max_clips,
                config.fit,
                self._data.clip_seconds,
                self._split.durations.get(name, float("nan")),
            )
        return self._edges[video]

    def _clips(self, videos: Ints) -> Clips:
        names = [self._split.truth.videos[v] for v in videos]
        video, subtitle = (
            None
            if table is None
            else [
                self._cache.get((kind, name), lambda t=table, n=name, k=kind: clip_rows(t.read(n), self._config, k))  # type: ignore[misc]
                for name in names
            ]
            for kind, table in zip(MODALITIES, self._tables, strict=True)
        )
        return stack_clips(video, subtitle, names)

    def _word_rows(self, query: str) -> NDArray[np.float32]:
        def read() -> NDArray[np.float32]:
            rows = self._split.query.read(query)
            self._counts[query] = len(rows)
            return word_rows(rows, self._config)

        return self._cache.get(("query", query), read)

    def _words(self, queries: Ints) -> Words:
        ids = [self._split.truth.query_ids[q] for q in queries]
        rows = [self._word_rows(q) for q in ids]
        if not self._roles and not needs_text(self._config):
            return stack_words(rows)
        texts = [self._split.truth.text(q) or "" for q in ids]
        if needs_text(self._config):
            return replace(stack_words(rows), ids=word_ids(texts, self._config.max_words))
        return stack_words(rows, texts, [self._counts[q] for q in ids], role_parser(self._config))


def _pair_mask(drawn: NegativePairs, queries: Ints, videos: Ints) -> Tensor:
    """(queries, videos): True for what was drawn."""
    mask = torch.zeros(len(queries), len(videos), dtype=torch.bool)
    mask[np.searchsorted(queries, drawn.queries), np.searchsorted(videos, drawn.videos)] = True
    return mask
