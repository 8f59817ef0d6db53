"""Hit: one moment that a search found, with all that is needed to show, explain, cut or export it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal

from momentseek.media.cue import Cue
from momentseek.moments import Moment

Level = Literal["strong", "fair", "weak"]


@dataclass(frozen=True)
class Standing:
    """How one stream (vision, speech, name) saw a hit: its rank there, from 1, and that stream's own score."""

    rank: int
    score: float


@dataclass(frozen=True)
class Hit:
    """A moment with its rank and reasons.

    >>> hit = Hit(1, 7, Path("/films/kitchen.mp4"), "kitchen.mp4", 3.0, 9.0, 0.03, "strong", 4.5, 60.0)
    >>> hit.moment
    Moment(video='kitchen.mp4', start=3.0, end=9.0)
    """

    rank: int
    video_id: int
    path: Path
    name: str
    """The video as people call it: its path relative to the folder that was added."""
    start: float
    end: float
    score: float
    """The fused score; comparable within one search only."""
    level: Level
    peak: float
    """The time of its most representative frame."""
    duration: float
    """Of the whole video."""
    rate: Fraction = Fraction(25)
    """Frames per second of the video."""
    said: tuple[Cue, ...] = ()
    """The cues that overlap the moment."""
    streams: Mapping[str, Standing] = field(default_factory=dict)
    curve: tuple[float, ...] = ()
    """The vision stream's score of each clip of the video, where an explanation was asked for."""
    also: tuple[str, ...] = ()
    """Names of other files with the same content."""
    width: int | None = None
    height: int | None = None
    """Of the picture as shown, in pixels."""
    audio: bool = False
    """Whether the video is known to have sound."""
    first: Standing | None = None
    """If a model re-ranked the hit (``score`` is then the model's): where its video stood before, and how it scored."""
    model: str = ""
    """The model that did."""

    @property
    def moment(self) -> Moment:
        """Only where it is."""
        return Moment(self.name, self.start, self.end)
