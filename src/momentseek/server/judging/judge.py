"""One person's work: the next moment, saying what it is, taking that back."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

from momentseek.construct.annotation.consensus import LABELS_PER_PAIR
from momentseek.library.catalog import Catalog
from momentseek.server.judging.candidates import BATCHES, further
from momentseek.server.judging.consensus import Pair, pairs
from momentseek.server.judging.errors import RefusedError, UnknownError
from momentseek.server.judging.order import shuffled
from momentseek.server.judging.rows import CandidateRow, Judgement
from momentseek.server.judging.store import Store
from momentseek.server.judging.videos import playable, present

LONGEST_NAME = 64


def annotator_name(given: str) -> str:
    r"""A name in its one spelling, or a ValueError: 1 to 64 printable characters.

    >>> annotator_name("  Zoe\u0308 ")
    'Zoë'
    >>> annotator_name("a\nb")
    Traceback (most recent call last):
        ...
    ValueError: a name has 1 to 64 printable characters
    """
    name = unicodedata.normalize("NFC", given).strip()
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise ValueError(f"a name has 1 to {LONGEST_NAME} printable characters")
    return name


@dataclass(frozen=True)
class Task:
    """What somebody has to do for a query; a moment whose video cannot be shown is nothing to do."""

    candidate: CandidateRow | None
    video_id: int | None
    done: int
    left: int
    hidden: int
    """Moments that cannot be shown: their video was removed, or its file is not there."""


def following(store: Store, catalog: Catalog, query: int, annotator: str, skip: Collection[int] = ()) -> Task:
    """The next moment of a query for somebody, in their own order; those of ``skip`` stay for later."""
    with store.view():
        store.query(query)
        candidates = store.candidates(query)
        found = pairs((c.pair for c in candidates), store.judgements(query))
    awaiting = [c for c in candidates if found[c.pair].awaits(annotator)]
    there = playable(catalog, (c.video for c in awaiting))
    left = [c for c in awaiting if c.video in there]
    done = sum(found[c.pair].has(annotator) for c in candidates)
    first = next((c for c in shuffled(left, annotator) if c.id not in skip), None)
    return Task(first, there[first.video] if first else None, done, len(left), len(awaiting) - len(left))


@dataclass(frozen=True)
class Said:
    """A judgement that now counts, what the same person said before, and what became of the pair."""

    judgement: Judgement
    before: int | None
    pair: Pair


def judge(store: Store, catalog: Catalog, query: int, candidate: int, annotator: str, relevance: int) -> Said:
    """Keep what somebody says; the latest counts. Whom the pair no longer needs is told so."""
    with store.changes():
        store.query(query)
        candidates = store.candidates(query)
        asked = next((c for c in candidates if c.id == candidate), None)
        if asked is None:
            raise UnknownError(f"query {query} has no candidate {candidate}; ask for the next one")
        before = pairs([asked.pair], [j for j in store.judgements(query) if j.candidate == candidate])[asked.pair]
        if not before.needs and not before.has(annotator):
            many = len(before.labels)
            how = "agree on this moment" if many == LABELS_PER_PAIR[0] else "have judged this moment"
            raise RefusedError(f"{many} annotators {how} already; ask for the next one", "not_needed")
        store.add_judgement(candidate, annotator, relevance)
        said = store.judgements(query)
        found = pairs((c.pair for c in candidates), said)
        _settle(store, catalog, query)
    mine = next(j for j in said if j.candidate == candidate and j.annotator == annotator)
    return Said(mine, dict(before.labels).get(annotator), found[asked.pair])


def _settle(store: Store, catalog: Catalog, query: int) -> None:
    """Open the second batch if the first asks for it by now, or else close it; what people judged of it stays open."""
    row, candidates = store.query(query), store.candidates(query)
    found = pairs((c.pair for c in candidates), store.judgements(query))
    decision = further(candidates, found, row.depth, present(catalog, (c.video for c in candidates)))
    begun = any(c.batch == BATCHES and found[c.pair].labels for c in candidates)
    batches = BATCHES if begun or decision.outcome == "extended" else 1
    if batches != row.batches:
        store.open_batch(query, batches)


def undo(store: Store, catalog: Catalog, annotator: str) -> tuple[Judgement, int | None]:
    """Take back what somebody said last; that, and what they said before of the same moment, which counts again."""
    with store.changes():
        last = store.take_back(annotator)
        if last is None:
            raise UnknownError("there is nothing to take back; no judgement of this annotator is left")
        now = [j for j in store.judgements(last.query) if (j.candidate, j.annotator) == (last.candidate, annotator)]
        _settle(store, catalog, last.query)
    return last, now[0].relevance if now else None
