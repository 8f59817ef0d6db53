"""Queries, their candidate moments, judgements, and the consensus of annotators.

The rule is that of ``benchmarks``: two annotators judge a pair of query and moment; if they differ by more than 1, two
more do. Nobody else is asked, because the rule is only defined for two and four labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from momentseek.benchmarks.datasets.annotation.agreement import measure_agreement
from momentseek.benchmarks.datasets.annotation.candidates import AnnotationCandidate
from momentseek.benchmarks.datasets.annotation.consensus import (
    LABELS_PER_PAIR,
    Consensus,
    find_consensus,
    label_distributions,
    measure_drift,
)
from momentseek.benchmarks.datasets.annotation.consensus_report import consensus_json
from momentseek.benchmarks.datasets.annotation.labels import group_labels

AnnotatorRule = Literal["one", "two"]
"""``two``: TVR-Ranking's rule, two annotators or four if they disagree. ``one``: a single judgement is enough."""
ONE_ANNOTATOR_REASON = "one annotator judges alone"


@dataclass(frozen=True)
class QueryRow:
    """A query whose candidate moments are judged."""

    id: int
    text: str
    depth: int
    """Number of candidates in a batch."""
    batches: int
    """Number of batches that are judged."""
    created: float
    """Time at which the query was added, in seconds since 1970."""


@dataclass(frozen=True)
class CandidateRow:
    """A moment that may be judged for a query.

    >>> row = CandidateRow(7, 2, "a dog", 3, 1, "9f86d0", "park.mp4", "park.mp4", 60.0, 1.5, 6.0, 0.25)
    >>> row.pair, row.candidate.video
    ('2/7', 'park.mp4')
    """

    id: int
    query: int
    text: str
    rank: int
    batch: int
    video: str
    """The hash of the video's bytes."""
    label: str
    """The name of the video in exported files, made unique if another video has the same."""
    name: str
    duration: float
    start: float
    end: float
    score: float

    @property
    def pair(self) -> str:
        """The id of the pair of query and moment, as label files have it."""
        return f"{self.query}/{self.id}"

    @property
    def candidate(self) -> AnnotationCandidate:
        """The candidate in the form that the tools for building benchmarks use."""
        return AnnotationCandidate(
            pair_id=self.pair, query_id=str(self.query), query=self.text, video=self.label, start=self.start,
            end=self.end, score=self.score, rank=self.rank, batch=self.batch, caption="", duration=self.duration,
        )  # fmt: skip


@dataclass(frozen=True)
class JudgementRow:
    """How relevant one annotator finds a candidate, from 0 to 4."""

    id: int
    query: int
    candidate: int
    annotator: str
    relevance: int
    at: float
    """Time of the judgement, in seconds since 1970."""

    @property
    def label(self) -> tuple[str, str, int]:
        """Pair id, annotator and level, as a row of a label file."""
        return f"{self.query}/{self.candidate}", self.annotator, self.relevance


Row = TypeVar("Row", CandidateRow, JudgementRow)


def group_by_query(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Query id → its rows, in their order."""
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.query, []).append(row)
    return groups


@dataclass(frozen=True)
class JudgedPair:
    """A pair of query and moment with its labels so far.

    ``outcome`` is ``kept``, ``discarded``, or ``waiting`` while more annotators are needed.
    """

    outcome: str
    reason: str
    needs: int
    """Number of annotators who still have to judge it."""
    relevance: int | None = None
    """The level from 0 to 4 on which the annotators agree, if they do."""
    labels: tuple[tuple[str, int], ...] = ()
    """Annotators and their levels, in the order in which they judged."""

    def is_open_for(self, annotator: str) -> bool:
        """Whether this annotator should judge it."""
        return self.needs > 0 and not self.judged_by(annotator)

    def judged_by(self, annotator: str) -> bool:
        """Whether this annotator has judged it."""
        return any(name == annotator for name, _ in self.labels)


UNJUDGED_PAIR = JudgedPair("waiting", "no label", LABELS_PER_PAIR[0])


def label_consensus(judgements: Sequence[JudgementRow]) -> Consensus | None:
    """Apply the consensus rule to all judgements; None if there are none. One or three labels are incomplete."""
    if not judgements:
        return None
    return find_consensus(group_labels((j.label for j in judgements), "judgements"), incomplete="drop")


def judged_pairs(
    ids: Iterable[str], judgements: Sequence[JudgementRow], rule: AnnotatorRule = "two"
) -> dict[str, JudgedPair]:
    """Pair id → the pair with its labels and outcome, for every id.

    The rules only differ for pairs with fewer than two labels.

    >>> rows = [JudgementRow(i, 1, c, who, level, 0.0) for i, (c, who, level) in enumerate(
    ...     [(1, "ann", 3), (1, "bob", 4), (2, "ann", 0), (2, "bob", 2), (3, "ann", 1)])]
    >>> pairs = judged_pairs(["1/1", "1/2", "1/3", "1/4"], rows)
    >>> {id: (pair.outcome, pair.relevance, pair.needs) for id, pair in pairs.items()}
    {'1/1': ('kept', 4, 0), '1/2': ('waiting', None, 2), '1/3': ('waiting', None, 1), '1/4': ('waiting', None, 2)}
    >>> alone = judged_pairs(["1/3", "1/4"], rows, "one")
    >>> {id: (pair.outcome, pair.relevance, pair.needs) for id, pair in alone.items()}
    {'1/3': ('kept', 1, 0), '1/4': ('waiting', None, 1)}
    """
    result = label_consensus(judgements)
    judged: dict[str, JudgedPair] = {}
    for decision in result.decisions() if result else ():
        labels = decision.evidence["labels"]
        by_annotator = tuple(zip(decision.evidence["workers"], labels, strict=True))
        needs = annotators_needed(len(labels), decision.outcome == "kept")
        if rule == "one" and len(labels) == 1:
            judged[decision.subject] = JudgedPair("kept", ONE_ANNOTATOR_REASON, 0, labels[0], by_annotator)
            continue
        outcome = "waiting" if needs else "discarded" if decision.outcome == "dropped" else decision.outcome
        judged[decision.subject] = JudgedPair(
            outcome, decision.reason, needs, decision.evidence.get("relevance"), by_annotator
        )
    unjudged = UNJUDGED_PAIR if rule == "two" else replace(UNJUDGED_PAIR, needs=1)
    return {pair: judged.get(pair, unjudged) for pair in ids}


def annotators_needed(labels: int, kept: bool) -> int:
    """Number of annotators that a pair still needs, by its number of labels and whether they agree (``kept``).

    >>> [annotators_needed(n, False) for n in range(6)], annotators_needed(2, True)
    ([2, 1, 2, 1, 0, 0], 0)
    """
    return 0 if kept else next((size - labels for size in LABELS_PER_PAIR if size > labels), 0)


def consensus_statistics(judgements: Sequence[JudgementRow]) -> dict[str, Any] | None:
    """The statistics that ``momentseek data consensus --json`` reports; None while no pair has two labels."""
    found = label_consensus(judgements)
    if found is None or not found.complete.any():
        return None
    return consensus_json(found, measure_agreement(found.labels), measure_drift(found), label_distributions(found))
