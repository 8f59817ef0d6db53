"""Found: what a single stream says about one moment."""

from __future__ import annotations

from dataclasses import dataclass

from momentseek.search.hit import Level


@dataclass(frozen=True)
class StreamHit:
    """A moment as one stream sees it; a stream returns its moments best first."""

    video: int
    start: float
    end: float
    score: float
    """The stream's own; not comparable with another stream's."""
    level: Level
    peak: float
    """The time to show."""
