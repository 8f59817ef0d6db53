"""How far the judging of each query has got."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from momentseek.api import Library
from momentseek.construct.annotation.consensus import LABELS_PER_PAIR
from momentseek.server.database import DatabasePlace
from momentseek.server.judging.candidates import MAX_BATCHES, decide_second_batch
from momentseek.server.judging.consensus import JudgedPair, judged_pairs
from momentseek.server.judging.rows import CandidateRow, JudgementRow, QueryRow, group_by_query
from momentseek.server.judging.store import JudgementStore
from momentseek.server.judging.videos import present_ids

SecondBatch = Literal["extended", "covered", "waiting"]


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


def query_states(library: Library, place: DatabasePlace, only: int | None = None) -> list[QueryState]:
    """The state of all queries, or of the one with the id ``only``."""
    return read_states(library, place, only)[0]


def read_states(
    library: Library, place: DatabasePlace, only: int | None = None
) -> tuple[list[QueryState], list[JudgementRow]]:
    """The state of all queries, or of the one with the id ``only``, and all current judgements of the same instant."""
    with JudgementStore(place) as store, store.view():
        rows = store.queries() if only is None else [store.query(only)]
        candidates, judgements, rule = store.candidates(only), store.judgements(only), store.rule()
    pairs = judged_pairs((c.pair for c in candidates), judgements, rule)
    present = present_ids(library.catalog, (c.video for c in candidates))
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
