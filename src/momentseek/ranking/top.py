"""The largest entries of rows of scores, in an order that never depends on chance.

``argpartition`` finds them in linear time but takes any of those that tie for the last place; here the first of them
are taken, so that the same scores always give the same list, however they were cut into blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.moments.arrays import IntArray

Scores = NDArray[np.floating[Any]]


def top(values: Scores, k: int) -> tuple[IntArray, Scores]:
    """Places and values of the ``k`` largest entries of each row, best first; ties go to the earlier place.

    Fewer than ``k`` if the rows are shorter. Entries of minus infinity come last, in no particular order.

    >>> places, best = top(np.array([[0.1, 0.9, 0.5, 0.9], [2.0, 0.0, 2.0, 2.0]]), 2)
    >>> places.tolist(), best.tolist()
    ([[1, 3], [0, 2]], [[0.9, 0.9], [2.0, 2.0]])
    """
    values = np.asarray(values)
    size = values.shape[-1]
    k = max(0, min(k, size))
    rows = values.reshape(-1, size) if size else values.reshape(int(np.prod(values.shape[:-1])), 0)
    shape = (*values.shape[:-1], k)
    if k == 0:
        return np.zeros(shape, np.int64), np.zeros(shape, values.dtype)
    if k < size:
        places = np.argpartition(rows, size - k, axis=1)[:, size - k :].astype(np.int64)
        worst = np.take_along_axis(rows, places, axis=1).min(axis=1)
        tied = (np.count_nonzero(rows >= worst[:, None], axis=1) > k) & (worst > -np.inf)
        for i in np.flatnonzero(tied):
            better = np.flatnonzero(rows[i] > worst[i])
            places[i] = np.concatenate([better, np.flatnonzero(rows[i] == worst[i])[: k - len(better)]])
        places.sort(axis=1)
    else:
        places = np.broadcast_to(np.arange(size), rows.shape)
    best = np.take_along_axis(rows, places, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    places, best = np.take_along_axis(places, order, axis=1), np.take_along_axis(best, order, axis=1)
    return places.reshape(shape), best.reshape(shape)


def top_videos(scores: Scores, n: int) -> tuple[IntArray, Scores]:
    """The ``n`` best videos of each query, best first; ties go to the video that stands first in the corpus.

    A score of minus infinity leaves a video out: its place is -1.

    >>> top_videos(np.array([[0.2, -np.inf, 0.7]]), 3)[0].tolist()
    [[2, 0, -1]]
    """
    places, best = top(scores, n)
    return np.where(best > -np.inf, places, -1), best


class Running:
    """The ``n`` best videos of each query while the corpus passes by in blocks, in any order of the videos.

    >>> running = Running(1, 2)
    >>> running.add(np.array([[0.5, 0.1]]), np.array([7, 2]))
    >>> running.add(np.array([[0.5, 0.3]]), np.array([4, 3]))
    >>> running.video.tolist(), running.score.tolist()
    ([[4, 7]], [[0.5, 0.5]])
    """

    def __init__(self, queries: int, n: int) -> None:
        self.n = n
        self.video = np.zeros((queries, 0), np.int64)
        self.score = np.zeros((queries, 0), np.float64)

    def add(self, scores: Scores, videos: IntArray) -> None:
        """Scores ``(queries, v)`` of the ``v`` videos at these places of the corpus."""
        order = np.argsort(videos, kind="stable")
        if not np.array_equal(order, np.arange(len(order))):
            scores, videos = scores[:, order], videos[order]
        places, best = top_videos(scores, self.n)
        found = np.where(places < 0, -1, videos[places])
        video = np.concatenate([self.video, found], axis=1)
        score = np.concatenate([self.score, best.astype(np.float64)], axis=1)
        order = np.lexsort((video, -score), axis=-1)[:, : self.n]
        self.video, self.score = np.take_along_axis(video, order, axis=1), np.take_along_axis(score, order, axis=1)
