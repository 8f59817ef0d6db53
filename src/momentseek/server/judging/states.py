"""How far the judging of a query is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from momentseek.api import Library
from momentseek.construct.annotation.consensus import LABELS_PER_PAIR
from momentseek.server.judging.candidates import BATCHES, further
from momentseek.server.judging.consensus import Pair, pairs
from momentseek.server.judging.rows import CandidateRow, Judgement, QueryRow, by_query
from momentseek.server.judging.store import Store
from momentseek.server.judging.videos import present

Batch = Literal["extended", "covered", "waiting"]


@dataclass(frozen=True)
class QueryState:
    """A query, its moments, and what became of each."""

    row: QueryRow
    moments: Sequence[tuple[CandidateRow, Pair]]
    judged: Mapping[str, int]
    """Annotator → moments judged."""
    second_batch: Batch
    reason: str
    """Why the second batch is, or is not, judged."""
    here: Collection[str]
    """Hashes of the videos that are in the library."""

    def count(self, outcome: str) -> int:
        """Moments that were kept, discarded, or wait."""
        return sum(pair.outcome == outcome for _, pair in self.moments)

    @property
    def open(self) -> list[Pair]:
        """Those that need annotators and can be shown."""
        return [pair for c, pair in self.moments if pair.needs and c.video in self.here]

    @property
    def disputed(self) -> int:
        """Open ones on which the first two annotators do not agree."""
        return sum(len(pair.labels) >= LABELS_PER_PAIR[0] for pair in self.open)

    @property
    def removed(self) -> int:
        """Moments that wait, and whose video is no longer in the library."""
        return sum(pair.needs > 0 and c.video not in self.here for c, pair in self.moments)


def states(library: Library, only: int | None = None) -> list[QueryState]:
    """All queries, or one."""
    return look(library, only)[0]


def look(library: Library, only: int | None = None) -> tuple[list[QueryState], list[Judgement]]:
    """All queries, or one; and what everybody says, of the same instant."""
    with Store(library.path) as store, store.view():
        rows = store.queries() if only is None else [store.query(only)]
        candidates, said = store.candidates(only), store.judgements(only)
    found = pairs((c.pair for c in candidates), said)
    here = present(library.catalog, (c.video for c in candidates))
    groups, sayings = by_query(candidates), by_query(said)
    return [_state(row, groups.get(row.id, []), sayings.get(row.id, []), found, here) for row in rows], said


def _state(
    row: QueryRow,
    own: Sequence[CandidateRow],
    said: Sequence[Judgement],
    found: Mapping[str, Pair],
    here: Collection[str],
) -> QueryState:
    decision = further(own, found, row.depth, here)
    extended = row.batches == BATCHES
    reason = decision.reason
    if extended and decision.outcome != "extended":  # one that people have begun to judge stays open
        reason = f"people have judged moments of the second batch ({reason})"
    return QueryState(
        row,
        [(c, found[c.pair]) for c in own],
        dict(Counter(j.annotator for j in said)),
        "extended" if extended else cast("Batch", decision.outcome),
        reason,
        here,
    )
