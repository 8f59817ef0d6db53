"""The pairs of a training set as columns: query, video, times, weight, and what else of a query is related.

Every moment a query has (with relevance above 0) is one pair. ``related`` answers, for any queries and videos, what the
*whole* training set holds for related, not only what a batch happened to draw: the positive-pair mask of TVR-Ranking
(appendix C.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError
from momentseek.moments import Judgements

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TrainingPairs:
    """Pairs, one per entry; ``query`` and ``video`` are places in the truth's ``query_ids`` and ``videos``."""

    query: Ints
    video: Ints
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    weight: NDArray[np.float32]
    offsets: Ints
    """Pairs of query i are at ``offsets[i]:offsets[i + 1]``."""
    videos: int
    """How many videos the truth names."""
    also: Mapping[int, Ints] = field(default_factory=dict)
    """Further videos of the truth that are related to a query, by its place."""

    def __len__(self) -> int:
        return len(self.query)

    def related_mask(self, queries: Ints, videos: Ints) -> NDArray[np.bool_]:
        """(queries, videos): whether the training set has a pair of them, or says they are related."""
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
    """The pairs of a truth; moments of relevance 0 are none. ``related`` names further videos that answer a query.

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
