"""What an edit list is made of, and the text that an export gives."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

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
    """Why the excerpt is there: the query, or what is said."""
    duration: float
    """Length of the whole video, in seconds."""
    width: int | None = None
    height: int | None = None
    audio: bool = True

    def frames(self, rate: Fraction | None = None) -> tuple[int, int]:
        """The first frame and the one after the last, at the source's rate or a given one.

        At least one frame, and within the video.

        >>> Excerpt(Path("a.mp4"), "a.mp4", 1.0, 2.5, Fraction(25), "", 2.0).frames()
        (25, 50)
        """
        rate = self.rate if rate is None else rate
        length = max(1, frame_at(self.duration, rate))
        first = min(max(0, frame_at(self.start, rate)), length - 1)
        return first, min(max(first + 1, frame_at(self.end, rate)), length)


@dataclass(frozen=True)
class ExportText:
    """The text of an exported file, and notes on what its format could not carry."""

    text: str
    notes: tuple[str, ...] = ()


def file_url(path: Path) -> str:
    r"""The file: URL of a path, every byte outside a plain set percent-encoded.

    >>> file_url(Path("/films/a b\n🎬.mp4"))
    'file:///films/a%20b%0A%F0%9F%8E%AC.mp4'
    """
    return "file://" + quote(os.fsencode(Path(os.path.abspath(path)).as_posix()), safe="/:" if os.name == "nt" else "/")
