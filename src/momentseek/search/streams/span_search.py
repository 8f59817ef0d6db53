"""How videos are looked at, so that a look at the videos of many shards finds what a look at one library would.

Scans list the best videos; spans are sought on these, in the order of what they are worth, until there are enough. With
shards, the lists are joined first: then each shard seeks spans on those of its videos that are among the best of all,
and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.core.moments.arrays import Positions
from momentseek.search.hit import StreamHit
from momentseek.search.state import Ids


class VideoList(NamedTuple):
    """Videos that a scan found best, with their scores, best first."""

    ids: Ids
    scores: NDArray[np.float32]

    @classmethod
    def join(cls, lists: Iterable[VideoList], limit: int) -> VideoList:
        """The best ``limit`` of several lists; ties by id, as in a scan.

        >>> one, two = VideoList(np.array([3, 1]), np.array([9, 5])), VideoList(np.array([2]), np.array([5]))
        >>> VideoList.join([one, two], 2).ids.tolist()
        [3, 1]
        """
        ids, scores = cls.concatenate(lists)
        order = best_places(ids, scores, limit)
        return cls(ids[order], scores[order])

    @classmethod
    def concatenate(cls, lists: Iterable[VideoList]) -> VideoList:
        """Several lists one after another."""
        given = [each for each in lists if len(each.ids)] or [cls(np.zeros(0, np.int64), np.zeros(0, np.float32))]
        return cls(*(np.concatenate(columns) for columns in zip(*given, strict=True)))


def best_places(ids: Ids, scores: NDArray[np.float32], limit: int) -> Positions:
    """Where the best ``limit`` of some videos are, best first; ties by id, as in a scan."""
    some = np.arange(len(ids))
    if len(scores) > limit:
        some = np.flatnonzero(scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit])
    order: Positions = some[np.lexsort((ids[some], -scores[some]))[:limit]]
    return order


@dataclass(frozen=True, eq=False)
class SearchedVideos:
    """Videos in the order in which spans are sought on them, what they are worth, and the spans on the first ones."""

    videos: Ids
    worth: NDArray[np.float64]
    hits: list[list[StreamHit]]

    @classmethod
    def join(cls, parts: Sequence[SearchedVideos], limit: int) -> tuple[dict[int, float], dict[int, list[StreamHit]]]:
        """The ``limit`` videos that are worth most, in that order, and the spans that are known on some of them."""
        if not parts:
            return {}, {}
        videos, worth = np.concatenate([part.videos for part in parts]), np.concatenate([part.worth for part in parts])
        order = np.lexsort((videos, -worth))[:limit]
        hits = {id: found for part in parts for id, found in zip(part.videos.tolist(), part.hits, strict=False)}
        return dict(zip(videos[order].tolist(), worth[order].tolist(), strict=True)), hits


class SpanBudget(Protocol):
    """Decides when enough spans have been found."""

    def allows(self, worth: float) -> bool:
        """Whether spans are sought on the next video, which is worth so much."""
        ...

    def spend(self, found: Sequence[StreamHit]) -> None:
        """Take note of what was found on it."""
        ...


def in_order(worth: Mapping[int, float], limit: int | None = None) -> dict[int, float]:
    """Videos in the order in which spans are sought on them: those worth most first, ties by id.

    >>> in_order({3: 0.5, 2: 0.5, 1: 0.1})
    {2: 0.5, 3: 0.5, 1: 0.1}
    """
    return {id: worth[id] for id in sorted(worth, key=lambda id: (-worth[id], id))[:limit]}


def seek_spans(
    worth: Mapping[int, float], budget: SpanBudget, find: Callable[[int], list[StreamHit]]
) -> list[list[StreamHit]]:
    """The spans on each of the first videos, until the budget is spent."""
    out: list[list[StreamHit]] = []
    for id, value in worth.items():
        if not budget.allows(value):
            break
        out.append(find(id))
        budget.spend(out[-1])
    return out


def join_lists(lists: Mapping[int, Sequence[VideoList]], reach: int) -> dict[int, Ids]:
    """Shard → those of its videos that are among the best ``reach`` of all shards in one of the scans.

    >>> one, two = VideoList(np.array([3, 1]), np.array([9, 5])), VideoList(np.array([2]), np.array([7]))
    >>> {shard: ids.tolist() for shard, ids in join_lists({0: [one], 4: [two]}, 2).items()}
    {0: [3], 4: [2]}
    """
    pairs = []
    for scan in range(max(map(len, lists.values()), default=0)):
        given = {shard: some[scan] for shard, some in lists.items() if len(some) > scan}
        owner = np.repeat(np.array(list(given)), [len(each.ids) for each in given.values()])
        ids, scores = VideoList.concatenate(given.values())
        best = best_places(ids, scores, reach)
        pairs.append(np.stack([owner[best], ids[best]]))
    if not pairs:
        return {}
    owner, ids = np.concatenate(pairs, axis=1)
    order = np.lexsort((ids, owner))
    owner, ids = owner[order], ids[order]
    cuts = np.flatnonzero(np.diff(owner)) + 1
    parts = zip(owner[np.concatenate(([0], cuts))].tolist(), np.split(ids, cuts), strict=True) if len(ids) else ()
    return {shard: part if len(pairs) == 1 else np.unique(part) for shard, part in parts}
