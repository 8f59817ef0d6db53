"""Annotation: pool moments for a query, choose the next one to judge, save and undo judgements, and track progress.

To compare setups of the search, the best moments of each must have been judged. So the pool takes the first moment of
every setup, then the second, and so on, as test collections do (Spärck Jones and van Rijsbergen 1975); of moments that
nearly coincide only the first is taken. The first ``depth`` are judged, the next ``depth`` only if the last five of
those are still relevant (TVR-Ranking, appendix B.3).

An annotator who notices that the best candidates come first would judge by position. So each annotator sees the
candidates in a different order, given by a hash of query, annotator and candidate; it stays the same when they come
back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import Literal, cast

from momentseek.api.library import Library
from momentseek.benchmarks.datasets.annotation.candidates import BATCH_CANDIDATES, DECIDING_CANDIDATES, second_batch
from momentseek.benchmarks.datasets.annotation.consensus import LABELS_PER_PAIR
from momentseek.benchmarks.datasets.common import Decision
from momentseek.core.moments.moment import iou
from momentseek.library.catalog import Catalog
from momentseek.library.video import Video
from momentseek.search.hit import Hit
from momentseek.server.database import DatabaseLocation
from momentseek.server.errors import ConflictError, UnknownIdError
from momentseek.server.judging.consensus import (
    CandidateRow,
    JudgedPair,
    JudgementRow,
    QueryRow,
    group_by_query,
    judged_pairs,
)
from momentseek.server.judging.store import JudgementStore
from momentseek.server.schemas import clean_text

DEFAULT_DEPTH = BATCH_CANDIDATES
"""Number of moments in a batch."""
MAX_BATCHES = 2
SAME_MOMENT_IOU = 0.5
"""IoU from which two moments count as the same and are judged once.

The default measure counts one as the other. If both were judged relevant, a search that shows each moment once could
never reach the ideal score."""
MAX_CANDIDATE_SECONDS = 180.0
"""Longest moment that people are asked to watch; whole films are not candidates."""
SecondBatch = Literal["extended", "covered", "waiting"]


def present_ids(catalog: Catalog, hashes: Iterable[str]) -> dict[str, int]:
    """Hash → id of the video with that content, if it is in the library; the oldest one if there are copies."""
    return {hash: id for hash, id, _ in reversed(catalog.find_contents(hashes))}


def playable_ids(catalog: Catalog, hashes: Iterable[str]) -> dict[str, int]:
    """Hash → id of the video with that content, if its file exists now; the oldest one if there are copies."""
    return {hash: id for hash, id, path in reversed(catalog.find_contents(hashes)) if path.is_file()}


def videos_by_id(catalog: Catalog, ids: Iterable[int]) -> dict[int, Video]:
    """Id → video, for those that are still in the library."""
    return {video.id: video for video in catalog.videos(set(ids))}


def video_label(name: str, hash: str, taken: Mapping[str, str]) -> str:
    """The name of a video in exported files: its own, followed by part of the hash if another video has the same name.

    ``taken`` maps the hashes of other videos to their labels.

    >>> video_label("a.mp4", "1234567890ab", {}), video_label("a.mp4", "1234567890ab", {"ffff": "a.mp4"})
    ('a.mp4', 'a.mp4 (12345678)')
    >>> video_label("new.mp4", "ffff", {"ffff": "a.mp4"})
    'a.mp4'
    """
    if hash in taken:
        return taken[hash]
    used = set(taken.values())
    choices = (name, *(f"{name} ({hash[:size]})" for size in range(8, len(hash))), f"{name} ({hash})")
    return next(choice for choice in choices if choice not in used)


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

    Raises ConflictError if the query already exists, or if no setup found a moment for it.
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
    """A key for the order in which candidates are stored, so that their ids do not reveal the ranks."""
    return blake2b(f"{rank}\0{query}".encode(), digest_size=16).digest()


def refuse_duplicate(store: JudgementStore, query: str) -> None:
    """Raise ConflictError if a query with this text already exists."""
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


@dataclass(frozen=True)
class AnnotationTask:
    """The next moment an annotator should judge for a query, and how many are done and left."""

    candidate: CandidateRow | None
    """None if nothing is left to judge."""
    video_id: int | None
    done: int
    left: int
    """Number of moments still to judge that can be shown."""
    hidden: int
    """Number of moments that cannot be shown, because their video was removed or its file cannot be read."""


def annotator_order(candidates: Iterable[CandidateRow], annotator: str) -> list[CandidateRow]:
    """The candidates in one annotator's order; a second batch, which is only known later, comes after the first."""

    def key(candidate: CandidateRow) -> tuple[int, bytes]:
        text = f"{candidate.query}\0{candidate.id}\0{annotator}"
        return candidate.batch, blake2b(text.encode(), digest_size=16).digest()

    return sorted(candidates, key=key)


def next_task(
    store: JudgementStore, catalog: Catalog, query: int, annotator: str, skip: Collection[int] = ()
) -> AnnotationTask:
    """The next moment of a query for an annotator, in their own order; candidates in ``skip`` are left for later."""
    with store.view():
        store.query(query)
        candidates = store.candidates(query)
        pairs = judged_pairs((c.pair for c in candidates), store.judgements(query), store.rule(annotator))
    awaiting = [c for c in candidates if pairs[c.pair].is_open_for(annotator)]
    playable = playable_ids(catalog, (c.video for c in awaiting))
    left = [c for c in awaiting if c.video in playable]
    done = sum(pairs[c.pair].judged_by(annotator) for c in candidates)
    first = next((c for c in annotator_order(left, annotator) if c.id not in skip), None)
    return AnnotationTask(first, playable[first.video] if first else None, done, len(left), len(awaiting) - len(left))


@dataclass(frozen=True)
class SavedJudgement:
    """A judgement that was saved, the same annotator's level before it, and the outcome for the moment."""

    judgement: JudgementRow
    before: int | None
    pair: JudgedPair


def save_judgement(
    store: JudgementStore, catalog: Catalog, query: int, candidate: int, annotator: str, relevance: int
) -> SavedJudgement:
    """Save an annotator's judgement of a candidate; their latest one counts.

    Raises ConflictError if the moment needs no more annotators, and UnknownIdError if there is no such candidate.
    """
    with store.changes():
        store.query(query)
        candidates = store.candidates(query)
        chosen = next((c for c in candidates if c.id == candidate), None)
        if chosen is None:
            raise UnknownIdError(f"query {query} has no candidate {candidate}; ask for the next one")
        earlier = [j for j in store.judgements(query) if j.candidate == candidate]
        before = judged_pairs([chosen.pair], earlier, store.rule(annotator))[chosen.pair]
        if not before.needs and not before.judged_by(annotator):
            many = len(before.labels)
            how = "agree on this moment" if many == LABELS_PER_PAIR[0] else "have judged this moment"
            who = "one annotator has judged this moment" if many == 1 else f"{many} annotators {how}"
            raise ConflictError(f"{who} already; ask for the next one", "not_needed")
        store.add_judgement(candidate, annotator, relevance)
        said = store.judgements(query)
        pairs = judged_pairs((c.pair for c in candidates), said, store.rule())
        _update_batches(store, catalog, query)
    mine = next(j for j in said if j.candidate == candidate and j.annotator == annotator)
    return SavedJudgement(mine, dict(before.labels).get(annotator), pairs[chosen.pair])


def _update_batches(store: JudgementStore, catalog: Catalog, query: int) -> None:
    """Open the second batch if the first one now requires it; otherwise close it, unless judging it has begun."""
    row, candidates = store.query(query), store.candidates(query)
    pairs = judged_pairs((c.pair for c in candidates), store.judgements(query), store.rule())
    decision = decide_second_batch(candidates, pairs, row.depth, present_ids(catalog, (c.video for c in candidates)))
    begun = any(c.batch == MAX_BATCHES and pairs[c.pair].labels for c in candidates)
    batches = MAX_BATCHES if begun or decision.outcome == "extended" else 1
    if batches != row.batches:
        store.open_batch(query, batches)


def undo_last(store: JudgementStore, catalog: Catalog, annotator: str) -> tuple[JudgementRow, int | None]:
    """Undo an annotator's last judgement.

    Returns it, and the level that they gave the same moment before, which counts again, or None. Raises UnknownIdError
    if there is nothing to undo.
    """
    with store.changes():
        last = store.undo_last(annotator)
        if last is None:
            raise UnknownIdError("there is nothing to undo; this annotator has no judgement left")
        now = [j for j in store.judgements(last.query) if (j.candidate, j.annotator) == (last.candidate, annotator)]
        _update_batches(store, catalog, last.query)
    return last, now[0].relevance if now else None


@dataclass(frozen=True)
class QueryState:
    """A query with its candidate moments and what the annotators have said about each so far."""

    row: QueryRow
    moments: Sequence[tuple[CandidateRow, JudgedPair]]
    judged: Mapping[str, int]
    """Annotator → number of moments they have judged."""
    second_batch: SecondBatch
    reason: str
    """Why the second batch is judged or not."""
    present: Collection[str]
    """Hashes of the videos that are in the library."""

    def count(self, outcome: str) -> int:
        """Number of moments with an outcome: ``kept``, ``discarded`` or ``waiting``."""
        return sum(pair.outcome == outcome for _, pair in self.moments)

    @property
    def open_pairs(self) -> list[JudgedPair]:
        """The moments that need more annotators and can be shown."""
        return [pair for c, pair in self.moments if pair.needs and c.video in self.present]

    def count_disputed(self) -> int:
        """Number of open moments on which the first two annotators disagree."""
        return sum(len(pair.labels) >= LABELS_PER_PAIR[0] for pair in self.open_pairs)

    def count_removed(self) -> int:
        """Number of moments that need more annotators but whose video is no longer in the library."""
        return sum(pair.needs > 0 and c.video not in self.present for c, pair in self.moments)


def query_states(library: Library, place: DatabaseLocation, only: int | None = None) -> list[QueryState]:
    """The state of all queries, or of the one with the id ``only``."""
    return read_states(library, place, only)[0]


def read_states(
    library: Library, place: DatabaseLocation, only: int | None = None
) -> tuple[list[QueryState], list[JudgementRow]]:
    """The state of all queries, or of the one with the id ``only``, and all current judgements of the same instant."""
    with JudgementStore(place) as store, store.view():
        rows = store.queries() if only is None else [store.query(only)]
        candidates, judgements, rule = store.candidates(only), store.judgements(only), store.rule()
    pairs = judged_pairs((c.pair for c in candidates), judgements, rule)
    present = present_ids(library.store.catalog, (c.video for c in candidates))
    by_query, said = group_by_query(candidates), group_by_query(judgements)
    states = [_query_state(row, by_query.get(row.id, []), said.get(row.id, []), pairs, present) for row in rows]
    return states, judgements


def _query_state(
    row: QueryRow,
    candidates: Sequence[CandidateRow],
    judgements: Sequence[JudgementRow],
    pairs: Mapping[str, JudgedPair],
    present: Collection[str],
) -> QueryState:
    decision = decide_second_batch(candidates, pairs, row.depth, present)
    extended = row.batches == MAX_BATCHES
    reason = decision.reason
    if extended and decision.outcome != "extended":  # a batch that people have begun to judge stays open
        reason = f"people have judged moments of the second batch ({reason})"
    return QueryState(
        row,
        [(c, pairs[c.pair]) for c in candidates],
        dict(Counter(j.annotator for j in judgements)),
        "extended" if extended else cast("SecondBatch", decision.outcome),
        reason,
        present,
    )
