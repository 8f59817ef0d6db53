"""Utterance: cues that answer a query together."""

from __future__ import annotations

from dataclasses import dataclass

from momentseek.search.hit import Level

GAP = 2.0
"""Seconds between two cues of one utterance."""
LONGEST = 15.0
"""Seconds of an utterance."""


@dataclass(frozen=True)
class Utterance:
    """Cues of one video that answer a query together."""

    video: int
    start: float
    end: float
    score: float
    level: Level
