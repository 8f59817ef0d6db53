"""What one annotator does: get the next moment, judge it, undo the last judgement.

The best candidates come first in the pool, and an annotator who noticed that would judge by position. So everybody sees
the candidates in an order of their own, by a hash of query, annotator and candidate: it is the same whenever they come
back, and a candidate that is no longer shown does not move the others.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import blake2b

from momentseek.construct.annotation.consensus import LABELS_PER_PAIR
from momentseek.library.catalog import Catalog
from momentseek.server.errors import ConflictError, UnknownIdError
from momentseek.server.judging.candidates import MAX_BATCHES, decide_second_batch
from momentseek.server.judging.consensus import JudgedPair, judged_pairs
from momentseek.server.judging.rows import CandidateRow, JudgementRow
from momentseek.server.judging.store import JudgementStore
from momentseek.server.judging.videos import playable_ids, present_ids

MAX_NAME_CHARACTERS = 64


def normalise_annotator(given: str) -> str:
    r"""An annotator's name in normal form; raises ValueError unless it has 1 to 64 printable characters.

    >>> normalise_annotator("  Zoe\u0308 ")
    'Zoë'
    >>> normalise_annotator("a\nb")
    Traceback (most recent call last):
        ...
    ValueError: a name has 1 to 64 printable characters
    """
    name = unicodedata.normalize("NFC", given).strip()
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise ValueError(f"a name has 1 to {MAX_NAME_CHARACTERS} printable characters")
    return name


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
    """A judgement that now counts, the same annotator's level before it, and what became of the moment."""

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
    """Open the second batch if the first one calls for it by now, else close it, unless people have begun it."""
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
