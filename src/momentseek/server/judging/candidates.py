"""The moments that are judged for a query: a pool of what several setups of the search find.

To compare setups, each one's best moments must have been judged. So the pool takes every setup's first moment, then
every second, and so on, as test collections do (Spärck Jones and van Rijsbergen 1975); of moments that nearly coincide
the first counts. The first ``depth`` are judged; the next ``depth`` only if the last five of those are still relevant
(TVR-Ranking, appendix B.3; ``momentseek.construct.annotation.candidates`` has the rule).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest

from momentseek.construct.annotation.candidates import BATCH_CANDIDATES, DECIDING_CANDIDATES, second_batch
from momentseek.construct.decisions import Decision
from momentseek.library.catalog import Catalog
from momentseek.library.video import Video
from momentseek.moments import iou
from momentseek.search.hit import Hit
from momentseek.server.answers import text
from momentseek.server.judging.consensus import Pair
from momentseek.server.judging.errors import RefusedError
from momentseek.server.judging.rows import CandidateRow
from momentseek.server.judging.store import Store
from momentseek.server.judging.videos import known, label_of

DEPTH = BATCH_CANDIDATES
BATCHES = 2
SAME = 0.5
"""Moments that overlap so far (IoU) are judged once: the usual measure takes one for the other, and if both were judged
relevant, no search that shows each moment once could reach the ideal."""
LONGEST = 180.0
"""Seconds of a moment that somebody can be asked to watch; whole films are no candidates."""


@dataclass(frozen=True)
class Pooled:
    """A moment of the pool."""

    video: Video
    start: float
    end: float


def pool(lists: Sequence[Sequence[Hit]], videos: Mapping[int, Video], most: int) -> list[Pooled]:
    """The first ``most`` different moments of all setups, rank by rank; those whose video is gone are left out."""
    found: list[Pooled] = []
    for ranks in zip_longest(*lists):
        for hit in ranks:
            video = videos.get(hit.video_id) if hit is not None else None
            if hit is None or video is None:
                continue
            one = Pooled(video, hit.start, min(hit.end, video.duration))
            if 0 < one.end - one.start <= LONGEST and not any(_same(one, other) for other in found):
                found.append(one)
            if len(found) == most:
                return found
    return found


def _same(one: Pooled, other: Pooled) -> bool:
    if one.video.hash != other.video.hash:
        return False
    return bool(iou(one.start, one.end, other.start, other.end) >= SAME)


def create(store: Store, catalog: Catalog, query: str, lists: Sequence[Sequence[Hit]], depth: int) -> int:
    """Keep a query with its candidates; its id. The same query twice, or one without moments, is refused."""
    videos = known(catalog, (hit.video_id for hits in lists for hit in hits))
    found = pool(lists, videos, BATCHES * depth)
    if not found:
        raise RefusedError("the search finds no moment for this query; add videos, or say it in other words")
    with store.changes():
        refuse_again(store, query)
        new = store.add_query(query, depth)
        labels = store.labels()
        ranks = range(1, len(found) + 1)
        for rank in sorted(ranks, key=lambda rank: ((rank - 1) // depth, _scattered(query, rank))):
            one, batch = found[rank - 1], 1 + (rank - 1) // depth
            hash, name = one.video.hash, text(one.video.name)
            labels[hash] = label_of(name, hash, labels)
            store.add_video(hash, labels[hash], name, one.video.duration)
            store.add_candidate(new, rank, batch, hash, one.start, one.end)
    return new


def _scattered(query: str, rank: int) -> bytes:
    """Candidates enter the store in this order, so that annotators cannot read the rank off the id."""
    return blake2b(f"{rank}\0{query}".encode(), digest_size=16).digest()


def refuse_again(store: Store, query: str) -> None:
    """Refuse a query that is there."""
    if (old := store.asking(query)) is not None:
        raise RefusedError(f"query {old.id} asks just that; judge its moments", "asked_before")


def further(
    candidates: Sequence[CandidateRow], pairs: Mapping[str, Pair], depth: int, here: Collection[str]
) -> Decision:
    """Whether a query needs its second batch: ``extended``, ``covered``, or ``waiting`` until the first is judged.

    ``here`` holds the hashes of videos that are in the library: a moment of a removed one is not waited for.
    """
    first = [c for c in candidates if c.batch == 1]
    waiting = sum(c.video in here and pairs[c.pair].needs > 0 for c in first)
    if waiting:
        return Decision(str(first[0].query), "waiting", f"{waiting} of the first batch still need annotators")
    if all(pairs[c.pair].outcome == "discarded" for c in first):
        return Decision(str(first[0].query), "covered", "no consensus on any of the first batch")
    levels = {c.pair: level for c in first if (level := pairs[c.pair].relevance) is not None}
    _, decisions = second_batch(
        [[c.candidate for c in first]], levels, size=depth, last=min(DECIDING_CANDIDATES, depth)
    )
    return decisions[0]
