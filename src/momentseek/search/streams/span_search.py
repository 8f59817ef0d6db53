"""Finds spans on the best videos of a library, which may have several parts.

Scans list the best videos; spans are sought on these, in the order of their scores, until there are enough. The lists
of several parts are joined first. Then each part seeks spans only on those of its videos that are among the best of
all. So all parts together find what one library would find.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from momentseek.core.moments.arrays import Positions
from momentseek.search.hit import StreamHit
from momentseek.search.stream_index import Ids

MORE_VIDEOS = 44
"""Number of videos on which spans are sought at a time; most searches need no more."""


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
        """Concatenate several lists."""
        given = [each for each in lists if len(each.ids)] or [cls(np.zeros(0, np.int64), np.zeros(0, np.float32))]
        return cls(*(np.concatenate(columns) for columns in zip(*given, strict=True)))


def best_places(ids: Ids, scores: NDArray[np.float32], limit: int) -> Positions:
    """Positions of the best ``limit`` videos, best first; ties by id, as in a scan."""
    some = np.arange(len(ids))
    if len(scores) > limit:
        some = np.flatnonzero(scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit])
    order: Positions = some[np.lexsort((ids[some], -scores[some]))[:limit]]
    return order


@dataclass(frozen=True, eq=False)
class SearchedVideos:
    """Videos in the order in which spans are sought on them, their scores, and the spans on the first ones."""

    videos: Ids
    scores: NDArray[np.float64]
    hits: list[list[StreamHit]]

    @classmethod
    def join(cls, parts: Sequence[SearchedVideos], limit: int) -> tuple[dict[int, float], dict[int, list[StreamHit]]]:
        """The ``limit`` best videos with their scores, best first, and the spans known so far."""
        if not parts:
            return {}, {}
        videos = np.concatenate([part.videos for part in parts])
        scores = np.concatenate([part.scores for part in parts])
        order = np.lexsort((videos, -scores))[:limit]
        hits = {id: found for part in parts for id, found in zip(part.videos.tolist(), part.hits, strict=False)}
        return dict(zip(videos[order].tolist(), scores[order].tolist(), strict=True)), hits


class SpanBudget(Protocol):
    """Decides when enough spans have been found."""

    def allows(self, score: float) -> bool:
        """Whether spans are sought on the next video, which has this score."""
        ...

    def spend(self, found: Sequence[StreamHit]) -> None:
        """Record the spans found on the last video."""
        ...


def in_order(scores: Mapping[int, float]) -> dict[int, float]:
    """Videos in the order in which spans are sought on them: those with the highest scores first, ties by id.

    >>> in_order({3: 0.5, 2: 0.5, 1: 0.1})
    {2: 0.5, 3: 0.5, 1: 0.1}
    """
    return {id: scores[id] for id in sorted(scores, key=lambda id: (-scores[id], id))}


def seek_spans(
    scores: Mapping[int, float], budget: SpanBudget, find: Callable[[Sequence[int]], Sequence[list[StreamHit]]]
) -> list[list[StreamHit]]:
    """Find the spans on each video, in order, until the budget is spent.

    ``find`` gets several videos at a time, and returns the spans of one or more of them, in order.
    """
    ids = list(scores)
    found: list[list[StreamHit]] = []
    out: list[list[StreamHit]] = []
    for at, score in enumerate(scores.values()):
        if not budget.allows(score):
            break
        if at == len(found):
            found += find(ids[at : at + MORE_VIDEOS])
        out.append(found[at])
        budget.spend(out[-1])
    return out


def join_lists(lists: Mapping[int, Sequence[VideoList]], depth: int) -> dict[int, Ids]:
    """Part → its videos that are among the best ``depth`` of all parts in one of the scans.

    >>> one, two = VideoList(np.array([3, 1]), np.array([9, 5])), VideoList(np.array([2]), np.array([7]))
    >>> {part: ids.tolist() for part, ids in join_lists({0: [one], 4: [two]}, 2).items()}
    {0: [3], 4: [2]}
    """
    pairs = []
    for scan in range(max(map(len, lists.values()), default=0)):
        given = {part: some[scan] for part, some in lists.items() if len(some) > scan}
        owner = np.repeat(np.array(list(given)), [len(each.ids) for each in given.values()])
        ids, scores = VideoList.concatenate(given.values())
        best = best_places(ids, scores, depth)
        pairs.append(np.stack([owner[best], ids[best]]))
    if not pairs:
        return {}
    owner, ids = np.concatenate(pairs, axis=1)
    return {int(part): np.unique(ids[owner == part]) for part in np.unique(owner)}


class PagedSearch:
    """Finds spans on the best videos of all parts, in the order in which one library would seek them.

    ``begin`` requests the scores of videos from all parts, and the spans on the first videos until each part has a page
    of a given size; ``go_on`` requests the spans on further videos.
    """

    def __init__(
        self,
        budget: Callable[[int], SpanBudget],
        depth: int,
        parts: int,
        begin: Callable[[int], Sequence[SearchedVideos]],
        go_on: Callable[[Sequence[int]], dict[int, list[StreamHit]]],
    ) -> None:
        self._budget, self._depth, self._parts, self._begin, self._go_on = budget, depth, parts, begin, go_on
        self._scores: dict[int, float] | None = None
        self._found: dict[int, list[StreamHit]] = {}

    def result(self, page: int) -> tuple[list[StreamHit], bool]:
        """The spans that fill a page, best first, and whether these are all spans."""
        if self._scores is None:
            self._scores, self._found = SearchedVideos.join(self._begin(page_share(page, self._parts)), self._depth)
        found = seek_spans(self._scores, self._budget(page), self._spans)
        return sort_hits(hit for some in found for hit in some), len(found) == len(self._scores)

    def _spans(self, videos: Sequence[int]) -> list[list[StreamHit]]:
        if videos[0] not in self._found:
            wanted = [id for id in self._scores or () if id not in self._found][:MORE_VIDEOS]
            self._found |= {id: [] for id in wanted} | self._go_on(wanted)  # empty if a part no longer answers
        return [self._found[id] for id in takewhile(self._found.__contains__, videos)]


def sort_hits(hits: Iterable[StreamHit]) -> list[StreamHit]:
    """Hits by their scores, best first; ties by video and time."""
    return sorted(hits, key=lambda h: (-h.score, h.video, h.start, h.end))


def page_share(page: int, parts: int) -> int:
    """Number of spans to seek in each part at first: its share of a page plus two standard deviations.

    >>> page_share(40, 1), page_share(40, 2), page_share(40, 64)
    (40, 29, 3)
    """
    share = page / max(1, parts)
    return page if parts < 2 else math.ceil(share + 2 * math.sqrt(share))
