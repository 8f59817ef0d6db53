"""In which order pairs are trained: a pure function of the seed and the epoch, so that any step can be made again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class PairOrder:
    """Batches of pairs, every pair once per epoch.

    ``per_video`` = 1 draws pairs at random. Above 1, a video is drawn with up to that many of its pairs, and ``batch``
    counts such draws: encoding one video, the costly part of a step, then serves several pairs. Batches of an epoch
    are of even size, so that none is too small to have negatives. With ``lengths`` of the videos and a ``window`` of
    several batches, videos of like length meet in a batch, and less is spent on padding.

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
        """Places of draws, sorted by length within windows of batches; the batches of a window in random order."""
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


def _firsts(draw: Ints) -> Ints:
    """Where each draw begins, of draws numbered in order."""
    return np.flatnonzero(np.r_[True, draw[1:] != draw[:-1]])
