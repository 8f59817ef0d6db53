"""What the store holds: queries, candidate moments, and what people say about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from momentseek.construct.annotation.candidates import AnnotationCandidate


@dataclass(frozen=True)
class QueryRow:
    """A query whose moments are judged."""

    id: int
    text: str
    depth: int
    """Candidates of a batch."""
    batches: int
    """Batches that are to be judged."""
    created: float


@dataclass(frozen=True)
class CandidateRow:
    """A moment to be judged for a query.

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
    """The video in files we write: its name, told apart where another video had that name."""
    name: str
    duration: float
    start: float
    end: float
    score: float

    @property
    def pair(self) -> str:
        """Query and moment, as labels call them."""
        return f"{self.query}/{self.id}"

    @property
    def candidate(self) -> AnnotationCandidate:
        """As the tools for building benchmarks know it."""
        return AnnotationCandidate(
            self.pair, str(self.query), self.text, self.label, self.start, self.end, self.score, self.rank, self.batch,
            "", self.duration,
        )  # fmt: skip


@dataclass(frozen=True)
class Judgement:
    """What somebody says about a candidate."""

    id: int
    query: int
    candidate: int
    annotator: str
    relevance: int
    at: float

    @property
    def label(self) -> tuple[str, str, int]:
        """As a row of labels."""
        return f"{self.query}/{self.candidate}", self.annotator, self.relevance


T = TypeVar("T", CandidateRow, Judgement)


def by_query(rows: Iterable[T]) -> dict[int, list[T]]:
    """Query → its rows, in their order."""
    groups: dict[int, list[T]] = {}
    for row in rows:
        groups.setdefault(row.query, []).append(row)
    return groups
