"""What the judgement store holds: queries, candidate moments, and judgements of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from momentseek.construct.annotation.candidates import AnnotationCandidate


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
    """What exported files call the video: its name, made unique if another video has the same."""
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
        """The candidate in the form in which the tools for building benchmarks take it."""
        return AnnotationCandidate(
            self.pair, str(self.query), self.text, self.label, self.start, self.end, self.score, self.rank, self.batch,
            "", self.duration,
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
