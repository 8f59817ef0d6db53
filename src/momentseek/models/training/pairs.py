"""The pairs of a training set as columns (query, video, times, weight), and the order in which they are drawn.

A pair is a query and a moment whose relevance to it is above 0. ``related_mask`` says which queries and videos of a
batch are related anywhere in the training set, so that a related video is never used as a negative example of a query.
The TVR-Ranking paper calls this the positive-pair mask (appendix C.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TrainingPairs:
    """Training pairs as columns; ``query`` and ``video`` are indices into the truth's ``query_ids`` and ``videos``."""

    query: Ints
    video: Ints
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    weight: NDArray[np.float32]
    offsets: Ints
    """Pairs of query i are at ``offsets[i]:offsets[i + 1]``."""
    videos: int
    """Number of videos in the truth."""
    also: Mapping[int, Ints] = field(default_factory=dict)
    """Further videos of the truth that are related to a query, by the query's index."""

    def __len__(self) -> int:
        return len(self.query)

    def among(self, queries: Ints, videos: Ints) -> Ints:
        """The pairs of some queries and some videos, in ascending order."""
        rows = np.concatenate([np.arange(self.offsets[q], self.offsets[q + 1]) for q in np.sort(queries).tolist()])
        return rows[np.isin(self.video[rows], videos)]

    def related_mask(self, queries: Ints, videos: Ints) -> NDArray[np.bool_]:
        """(queries, videos): whether the training set has a pair of the two, or lists them as related."""
        column = np.full(self.videos, -1)
        column[videos] = np.arange(len(videos))
        counts = self.offsets[queries + 1] - self.offsets[queries]
        owner = np.repeat(np.arange(len(queries)), counts)
        begin = np.cumsum(counts) - counts
        at = self.offsets[queries][owner] + np.arange(len(owner)) - begin[owner]
        found = column[self.video[at]]
        result = np.zeros((len(queries), len(videos)), dtype=bool)
        result[owner[found >= 0], found[found >= 0]] = True
        for row, query in enumerate(queries.tolist()):
            if query in self.also:
                others = column[self.also[query]]
                result[row, others[others >= 0]] = True
        return result


def training_pairs(
    truth: Judgements, similarity: bool = True, related: Mapping[str, Sequence[str]] | None = None
) -> TrainingPairs:
    """Build the pairs of a truth from its moments with relevance above 0.

    With ``similarity``, that column of the truth gives the weights. ``related`` names further videos that answer a
    query.

    >>> truth = Judgements.from_rows([("q1", "a", 0, 5, 1), ("q1", "b", 2, 9, 0), ("q2", "a", 7, 9, 1)])
    >>> pairs = training_pairs(truth)
    >>> len(pairs), pairs.related_mask(np.array([0, 1]), np.array([1, 0])).tolist()
    (2, [[False, True], [False, True]])
    """
    keep = np.flatnonzero(truth.relevance > 0)
    if not len(keep):
        raise MomentseekError(f"{truth.source}: no query has a relevant moment, so there is nothing to train on")
    query = truth.row_query[keep]
    weight = np.ones(len(truth.start), np.float32)
    if similarity and "similarity" in truth.columns:
        given = [1.0 if s is None else s for s in truth.columns["similarity"]]
        try:
            weight = np.clip(np.array(given, dtype=np.float32), 0.0, 1.0)
        except (TypeError, ValueError):
            raise MomentseekError(f"{truth.source}: similarity must be a number for every moment") from None
        if not np.isfinite(weight).all():
            raise MomentseekError(f"{truth.source}: similarity must be a number for every moment, and one is not")
    counts = np.bincount(query, minlength=len(truth))
    return TrainingPairs(
        query,
        truth.video[keep].astype(np.int64),
        truth.start[keep],
        truth.end[keep],
        weight[keep],
        np.concatenate([[0], np.cumsum(counts)]),
        len(truth.videos),
        {
            truth.position[query]: np.array([truth.video_code[v] for v in videos if v in truth.video_code], np.int64)
            for query, videos in (related or {}).items()
            if query in truth.position
        },
    )


def group_pairs(pairs: TrainingPairs) -> list[Ints]:
    """Group the pairs by query and video, in the order of the queries.

    >>> truth = Judgements.from_rows([("q", "a", 0, 5, 1), ("q", "b", 2, 9, 1), ("q", "a", 7, 9, 1)])
    >>> [rows.tolist() for rows in group_pairs(training_pairs(truth))]
    [[0, 2], [1]]
    """
    order = np.lexsort((pairs.video, pairs.query))
    changes = np.flatnonzero(np.diff(pairs.query[order]) | np.diff(pairs.video[order])) + 1
    return np.split(order, changes)


class PairOrder:
    """Divides all pairs into random batches, in a new order each epoch.

    ``per_video`` = 1 draws pairs at random. Above 1, a video is drawn with up to that many of its pairs, and ``batch``
    counts such draws: encoding one video, the costly part of a step, then serves several pairs. Batches of an epoch
    have even sizes, so that none is too small to have negatives. With the ``lengths`` of the videos and a ``window`` of
    several batches, videos of similar length share a batch, which saves padding.

    >>> order = PairOrder(np.array([0, 0, 1, 1, 1]), batch=2, per_video=2, seed=0)
    >>> order.per_epoch, sorted(np.concatenate([order.batch_at(0, i) for i in range(order.per_epoch)]).tolist())
    (2, [0, 1, 2, 3, 4])
    """

    def __init__(
        self, video: Ints, batch: int, per_video: int, seed: int, lengths: Ints | None = None, window: int = 1
    ) -> None:
        self._video = video
        self._lengths = lengths
        self._window = window
        self._per_video = per_video
        self._seed = seed
        counts = np.bincount(video)
        self.draws = int((-(-counts // per_video)).sum())
        self.per_epoch = max(1, round(self.draws / batch))
        self._epoch = -1
        self._cuts = np.arange(self.per_epoch + 1) * self.draws // self.per_epoch
        self._members = np.empty(0, np.int64)
        self._ends = np.empty(0, np.int64)

    def batch_at(self, epoch: int, index: int) -> Ints:
        """Pairs of the ``index``-th batch of an epoch."""
        if epoch != self._epoch:
            self._shuffle(epoch)
        first, last = self._cuts[index], self._cuts[index + 1]
        return self._members[(self._ends[first - 1] if first else 0) : self._ends[last - 1]]

    def _shuffle(self, epoch: int) -> None:
        """Shuffle the pairs of each video, cut them into draws, and shuffle the draws."""
        rng = np.random.default_rng([self._seed, epoch])
        count = len(self._video)
        mixed = rng.permutation(count)
        members = mixed[np.argsort(self._video[mixed], kind="stable")]
        owner = self._video[members]
        fresh = np.r_[True, owner[1:] != owner[:-1]]
        begin = np.maximum.accumulate(np.where(fresh, np.arange(count), 0))
        rank = np.arange(count) - begin
        draw = np.cumsum(fresh | (rank % self._per_video == 0)) - 1
        place = self._alike(rng.permutation(self.draws), owner[_firsts(draw)], rng)[draw]
        order = np.argsort(place, kind="stable")
        self._members = members[order]
        self._ends = np.cumsum(np.bincount(place, minlength=self.draws))
        self._epoch = epoch

    def _alike(self, place: Ints, video: Ints, rng: np.random.Generator) -> Ints:
        """Sort draws by length within windows of batches, and shuffle the batches of each window."""
        if self._lengths is None or self._window < 2:
            return place
        order, cuts = np.argsort(place), np.arange(self.per_epoch + 1) * self.draws // self.per_epoch
        batches: list[Ints] = []
        for first in range(0, self.per_epoch, self._window):
            part_cuts = cuts[first : first + self._window + 1]
            part = order[part_cuts[0] : part_cuts[-1]]
            part = part[np.argsort(self._lengths[video[part]], kind="stable")]
            pieces = np.split(part, part_cuts[1:-1] - part_cuts[0])
            batches += [pieces[i] for i in rng.permutation(len(pieces))]
        self._cuts = np.cumsum([0, *map(len, batches)])
        result = np.empty_like(place)
        result[np.concatenate(batches)] = np.arange(self.draws)
        return result


class ListOrder:
    """Draws batches of videos with all pairs among them, for the queries with the most pairs there.

    Half of a batch's videos are drawn once per epoch. The others come from the lists of a few queries that these
    videos answer. So a query has several of its listed moments in a batch, and its negatives are similar videos.

    >>> from momentseek import Judgements
    >>> pairs = training_pairs(Judgements.from_rows([(q, v, 0, 5, 1) for q in "ab" for v in "wxyz"]))
    >>> order = ListOrder(pairs, batch=2, queries=1, seed=0)
    >>> order.per_epoch, [len(order.batch_at(0, i)) for i in range(4)]
    (4, [2, 2, 2, 2])
    """

    def __init__(self, pairs: TrainingPairs, batch: int, queries: int, seed: int) -> None:
        self._pairs, self._seed, self._queries = pairs, seed, queries
        self._videos = np.unique(pairs.video)
        self._batch = min(batch, len(self._videos))
        self._own = max(1, self._batch // 2)
        self._by_video = np.argsort(pairs.video, kind="stable")
        self._begin = np.searchsorted(pairs.video[self._by_video], np.arange(pairs.videos + 1))
        self.per_epoch = -(-len(self._videos) // self._own)

    def batch_at(self, epoch: int, index: int) -> Ints:
        """Pairs of the ``index``-th batch of an epoch."""
        turn = np.random.default_rng([self._seed, epoch]).permutation(self._videos)
        rng = np.random.default_rng([self._seed, epoch, index])
        chosen = turn[index * self._own : (index + 1) * self._own]
        answered = rng.permutation(np.unique(self._pairs.query[self._pairs_of(chosen)]))
        for query in answered:
            if len(chosen) >= self._batch:
                break
            listed = self._pairs.video[self._pairs.offsets[query] : self._pairs.offsets[query + 1]]
            chosen = np.concatenate([chosen, rng.permutation(np.setdiff1d(listed, chosen))])
        found = self._pairs_of(chosen[: self._batch])
        counts = np.bincount(self._pairs.query[found], minlength=len(self._pairs.offsets) - 1)
        order = np.lexsort((rng.random(len(counts)), -counts))[: self._queries]
        kept = np.zeros(len(counts), dtype=bool)
        kept[order] = True
        return found[kept[self._pairs.query[found]]]

    def _pairs_of(self, videos: Ints) -> Ints:
        parts = [self._by_video[self._begin[v] : self._begin[v + 1]] for v in videos.tolist()]
        return np.sort(np.concatenate(parts))


def _firsts(draw: Ints) -> Ints:
    """The first index of each draw; draws are numbered in order."""
    return np.flatnonzero(np.r_[True, draw[1:] != draw[:-1]])
