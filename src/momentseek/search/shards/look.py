"""ShardedLook: spans on the best videos of all shards, each sought by the shard that has the video."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from momentseek.search.hit import StreamHit
from momentseek.search.streams.seen import LookedVideos, seek_spans
from momentseek.search.streams.vision import VisionLook, VisionResult

MORE_VIDEOS = 32
"""Videos on which spans are asked for at a time where shards have stopped too soon."""


class ShardedLook:
    """A look at the best videos of all shards, in the order in which one library would look at them.

    ``begin`` asks shards for what their videos are worth and for the spans on the first of them, until each has a page
    of a given size; ``go_on`` asks for the spans on further videos.
    """

    def __init__(
        self,
        look: VisionLook,
        depth: int,
        shards: int,
        begin: Callable[[int], Sequence[LookedVideos]],
        go_on: Callable[[Sequence[int]], dict[int, list[StreamHit]]],
    ) -> None:
        self._look, self._depth, self._shards, self._begin, self._go_on = look, depth, shards, begin, go_on
        self._worth: dict[int, float] | None = None
        self._found: dict[int, list[StreamHit]] = {}

    def result(self, page: int) -> VisionResult:
        """What is found until a page has so many spans."""
        if self._worth is None:
            self._worth, self._found = LookedVideos.join(self._begin(page_share(page, self._shards)), self._depth)
        hits = seek_spans(self._worth, self._look.budget(page), self._spans)
        whole = len(hits) == len(self._worth)
        return VisionResult.from_hits([hit for found in hits for hit in found], {}, whole=whole)

    def _spans(self, video: int) -> list[StreamHit]:
        if video not in self._found:
            unknown = [id for id in self._worth or () if id not in self._found]
            wanted = unknown[:MORE_VIDEOS]
            self._found |= {id: [] for id in wanted} | self._go_on(wanted)  # nothing, if a shard is away now
        return self._found[video]


def page_share(page: int, shards: int) -> int:
    """How many spans of a page are sought in each of some shards at first: its part, and two deviations of chance.

    >>> page_share(40, 1), page_share(40, 2), page_share(40, 64)
    (40, 29, 3)
    """
    part = page / max(1, shards)
    return page if shards < 2 else math.ceil(part + 2 * math.sqrt(part))
