"""What an edit list is made of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from momentseek.media.edit_lists.timecode import frame_at


@dataclass(frozen=True)
class Excerpt:
    """A stretch of a video to put into a timeline; times in seconds, ``rate`` in frames per second of the source."""

    path: Path
    name: str
    start: float
    end: float
    rate: Fraction
    title: str
    """Why it is there: the query, what is said."""
    duration: float
    """Of the whole video."""
    width: int | None = None
    height: int | None = None
    audio: bool = True

    def frames(self, rate: Fraction | None = None) -> tuple[int, int]:
        """First frame and the one after the last, at the source's rate or a given one.

        At least one frame, and within the video.

        >>> Excerpt(Path("a.mp4"), "a.mp4", 1.0, 2.5, Fraction(25), "", 2.0).frames()
        (25, 50)
        """
        rate = self.rate if rate is None else rate
        length = max(1, frame_at(self.duration, rate))
        first = min(max(0, frame_at(self.start, rate)), length - 1)
        return first, min(max(first + 1, frame_at(self.end, rate)), length)


@dataclass(frozen=True)
class Edit:
    """A stretch as an edit list has it: frames ``start`` up to ``end`` of the source, placed at frame ``record``."""

    path: Path | None
    name: str
    start: int
    end: int
    rate: Fraction
    record: int
    """At the rate of the whole list."""
    title: str = ""


@dataclass(frozen=True)
class EditListText:
    """An edit list's text, and what its format could not carry."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EditList:
    """An edit list as read."""

    title: str
    rate: Fraction
    edits: tuple[Edit, ...]
