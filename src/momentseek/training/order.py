"""In which order pairs are trained: a pure function of the seed and the epoch, so that any step can be made again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Order:
    """Batches of pairs, every pair once per epoch.

    ``per_video`` = 1 draws pairs at random. Above 1, a video is drawn with up to that many of its pairs, and ``batch``
    counts such draws: encoding one video, the costly part of a step, then serves several pairs. Batches of an epoch
    are of even size, so that none is too small to have negatives.

    >>> order = Order(np.array([0, 0, 1, 1, 1]), batch=2, per_video=2, seed=0)
    >>> order.per_epoch, sorted(np.concatenate([order.batch_at(0, i) for i in range(order.per_epoch)]).tolist())
    (2, [0, 1, 2, 3, 4])
    """

    def __init__(self, video: Ints, batch: int, per_video: int, seed: int) -> None:
        self._video = video
        self._per_video = per_video
        self._seed = seed
        counts = np.bincount(video)
        self.draws = int((-(-counts // per_video)).sum())
        self.per_epoch = max(1, round(self.draws / batch))
        self._epoch = -1
        self._members = np.empty(0, np.int64)
        self._ends = np.empty(0, np.int64)

    def batch_at(self, epoch: int, index: int) -> Ints:
        """Pairs of the ``index``-th batch of an epoch."""
        if epoch != self._epoch:
            self._shuffle(epoch)
        first, last = (self.draws * i // self.per_epoch for i in (index, index + 1))
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
        place = rng.permutation(self.draws)[draw]
        order = np.argsort(place, kind="stable")
        self._members = members[order]
        self._ends = np.cumsum(np.bincount(place, minlength=self.draws))
        self._epoch = epoch
