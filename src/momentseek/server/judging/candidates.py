"""The moments that are judged for a query: a pool of what several setups of the search find.

To compare setups, the best moments of each must have been judged. So the pool takes the first moment of every setup,
then the second, and so on, as test collections do (Spärck Jones and van Rijsbergen 1975); of moments that nearly
coincide only the first is taken. The first ``depth`` are judged, the next ``depth`` only if the last five of those are
still relevant (TVR-Ranking, appendix B.3; ``momentseek.construct.annotation.candidates`` has the rule).
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
from momentseek.server.errors import ConflictError
from momentseek.server.judging.consensus import JudgedPair
from momentseek.server.judging.rows import CandidateRow
from momentseek.server.judging.store import JudgementStore
from momentseek.server.judging.videos import video_label, videos_by_id
from momentseek.server.schemas import clean_text

DEFAULT_DEPTH = BATCH_CANDIDATES
"""Number of moments in a batch."""
MAX_BATCHES = 2
SAME_MOMENT_IOU = 0.5
"""IoU from which two moments count as the same and are judged once.

The usual measure takes one for the other, and if both were judged relevant, no search that shows each moment once
could reach the ideal."""
MAX_CANDIDATE_SECONDS = 180.0
"""The longest moment that people are asked to watch; whole films are no candidates."""


@dataclass(frozen=True)
class PooledMoment:
    """A moment that one of the pooled setups found."""

    video: Video
    start: float
    end: float


def pool_moments(lists: Sequence[Sequence[Hit]], videos: Mapping[int, Video], limit: int) -> list[PooledMoment]:
    """The first ``limit`` different moments of all setups, rank by rank; removed videos are left out."""
    pooled: list[PooledMoment] = []
    for ranks in zip_longest(*lists):
        for hit in ranks:
            video = videos.get(hit.video_id) if hit is not None else None
            if hit is None or video is None:
                continue
            one = PooledMoment(video, hit.start, min(hit.end, video.duration))
            if 0 < one.end - one.start <= MAX_CANDIDATE_SECONDS and not any(
                _is_same_moment(one, other) for other in pooled
            ):
                pooled.append(one)
            if len(pooled) == limit:
                return pooled
    return pooled


def _is_same_moment(one: PooledMoment, other: PooledMoment) -> bool:
    if one.video.hash != other.video.hash:
        return False
    return bool(iou(one.start, one.end, other.start, other.end) >= SAME_MOMENT_IOU)


def create_query(
    store: JudgementStore, catalog: Catalog, query: str, lists: Sequence[Sequence[Hit]], depth: int
) -> int:
    """Save a query with its candidates and return its id.

    Raises ConflictError if the query is there already, or if no setup found a moment for it.
    """
    videos = videos_by_id(catalog, (hit.video_id for hits in lists for hit in hits))
    moments = pool_moments(lists, videos, MAX_BATCHES * depth)
    if not moments:
        raise ConflictError("the search finds no moment for this query; add videos, or use other words")
    with store.changes():
        refuse_duplicate(store, query)
        new = store.add_query(query, depth)
        labels = store.labels()
        ranks = range(1, len(moments) + 1)
        for rank in sorted(ranks, key=lambda rank: ((rank - 1) // depth, _scatter_key(query, rank))):
            one, batch = moments[rank - 1], 1 + (rank - 1) // depth
            hash, name = one.video.hash, clean_text(one.video.name)
            labels[hash] = video_label(name, hash, labels)
            store.add_video(hash, labels[hash], name, one.video.duration)
            store.add_candidate(new, rank, batch, hash, one.start, one.end)
    return new


def _scatter_key(query: str, rank: int) -> bytes:
    """A key by which candidates enter the store, so that annotators cannot read the rank off the id."""
    return blake2b(f"{rank}\0{query}".encode(), digest_size=16).digest()


def refuse_duplicate(store: JudgementStore, query: str) -> None:
    """Raise ConflictError if a query with this text is there already."""
    if (old := store.find_query(query)) is not None:
        raise ConflictError(f"query {old.id} has the same text; judge its moments", "asked_before")


def decide_second_batch(
    candidates: Sequence[CandidateRow], pairs: Mapping[str, JudgedPair], depth: int, present: Collection[str]
) -> Decision:
    """Decide whether a query needs its second batch: ``extended``, ``covered``, or ``waiting`` for the first one.

    ``present`` holds the hashes of the videos in the library: moments of removed videos are not waited for.
    """
    first = [c for c in candidates if c.batch == 1]
    waiting = sum(c.video in present and pairs[c.pair].needs > 0 for c in first)
    if waiting:
        return Decision(str(first[0].query), "waiting", f"{waiting} of the first batch still need annotators")
    if all(pairs[c.pair].outcome == "discarded" for c in first):
        return Decision(str(first[0].query), "covered", "no consensus on any of the first batch")
    levels = {c.pair: level for c in first if (level := pairs[c.pair].relevance) is not None}
    _, decisions = second_batch(
        [[c.candidate for c in first]], levels, size=depth, last=min(DECIDING_CANDIDATES, depth)
    )
    return decisions[0]
