"""Candidate: a moment while it is being ranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from momentseek.search.confidence import together
from momentseek.search.hit import Level, Standing

WEIGHTS = {"vision": 1.0, "speech": 1.0, "name": 0.5}
"""What a stream counts."""
SURENESS: Mapping[Level, float] = {"strong": 1.0, "fair": 0.7, "weak": 0.4}
"""What it counts by how sure it is: else the first of a stream that has nothing to do with the query counts fully."""


@dataclass(eq=False)
class Candidate:
    """A moment while it is being ranked; its bounds are one stream's, never a union of several."""

    video: int
    start: float
    end: float
    peak: float
    standings: dict[str, Standing] = field(default_factory=dict)
    levels: dict[str, Level] = field(default_factory=dict)
    score: float = 0.0
    """The fused score, once it is ranked."""
    first: Standing | None = None
    """If a model re-ranked it: where its video stood before, among videos, and with which fused score."""
    model: str = ""
    """And which model."""

    @property
    def level(self) -> Level:
        """How sure it is, by all streams that saw it."""
        return together(self.levels.values())

    def stand(self, stream: str, rank: int, score: float, level: Level) -> None:
        """Note how a stream saw it; the better of two ranks counts."""
        if stream not in self.standings or rank < self.standings[stream].rank:
            self.standings[stream] = Standing(rank, score)
            self.levels[stream] = level

    def counts(self, stream: str) -> float:
        """What a stream's word on it counts: the stream's weight, times how sure it is of it."""
        return WEIGHTS[stream] * SURENESS[self.levels[stream]]
