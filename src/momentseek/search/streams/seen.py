"""What a look at a library's videos gave, so that the looks at several shards can be put together as one.

A scan lists the best videos, spans are sought on these in the order of how good they are, and at some point there are
enough. A shard stops no sooner than the whole library would: what it has found beside is a part of what was found in
all. So the spans of the whole library are among those of its shards, and are taken in the same order, by the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

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
        given = [each for each in lists if len(each.ids)] or [cls(np.zeros(0, np.int64), np.zeros(0, np.float32))]
        ids, scores = (np.concatenate(columns) for columns in zip(*given, strict=True))
        if len(scores) > limit:
            some = np.flatnonzero(scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit])
            ids, scores = ids[some], scores[some]
        order = np.lexsort((ids, -scores))[:limit]
        return cls(ids[order], scores[order])


@dataclass(frozen=True, eq=False)
class SeenVideos:
    """The videos that scans list, and those on which spans were sought, in that order, with what they are worth."""

    lists: tuple[VideoList, ...]
    """What each scan of the library found."""
    videos: Ids
    worth: NDArray[np.float64]
    """The score by which the videos are looked at one after another."""
    hits: list[list[StreamHit]] = field(default_factory=list)
    """The spans found on each."""


class SpanBudget(Protocol):
    """Decides when enough spans have been found."""

    def allows(self, worth: float) -> bool:
        """Whether spans are sought on the next video, which is worth so much."""
        ...

    def spend(self, found: Sequence[StreamHit]) -> None:
        """Take note of what was found on it."""
        ...


def join_seen(parts: Sequence[SeenVideos], reach: int, depth: int, budget: SpanBudget) -> list[StreamHit]:
    """The spans that one look at the videos of all parts would have found.

    ``reach`` is how many videos each scan lists, ``depth`` on how many of them spans are sought at most.
    """
    scans = max((len(part.lists) for part in parts), default=0)
    lists = [VideoList.join((part.lists[i] for part in parts if part.lists), reach) for i in range(scans)]
    if not lists:
        return []
    videos, worth = np.concatenate([part.videos for part in parts]), np.concatenate([part.worth for part in parts])
    names = np.unique(np.concatenate([each.ids for each in lists]))
    if not len(names):
        return []
    near = np.minimum(np.searchsorted(names, videos), len(names) - 1)  # as np.isin does, for few names and many videos
    listed = np.flatnonzero(names[near] == videos)
    order = listed[np.lexsort((videos[listed], -worth[listed]))][:depth]
    begins = np.cumsum([0, *(len(part.videos) for part in parts)])
    owner = np.searchsorted(begins, order, side="right") - 1
    out: list[StreamHit] = []
    for part, at, value in zip(owner.tolist(), (order - begins[owner]).tolist(), worth[order].tolist(), strict=True):
        if not budget.allows(value):
            break
        found = parts[part].hits[at]
        budget.spend(found)
        out += found
    return out
