"""What a reader finds: lines in single frames, and lines of a video with their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Box(NamedTuple):
    """Where a line stands, as shares of the frame's width and height."""

    left: float
    top: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """Intersection over union of two boxes.

        >>> Box(0.0, 0.0, 0.5, 0.5).overlap(Box(0.25, 0.0, 0.5, 0.5))
        0.3333333333333333
        """
        across = min(self.left + self.width, other.left + other.width) - max(self.left, other.left)
        down = min(self.top + self.height, other.top + other.height) - max(self.top, other.top)
        shared = max(0.0, across) * max(0.0, down)
        whole = self.width * self.height + other.width * other.height - shared
        return shared / whole if whole > 0 else 0.0


@dataclass(frozen=True)
class ReadLine:
    """A line that stands in one frame."""

    text: str
    box: Box
    score: float
    """How sure the reader is, 0 to 1."""


@dataclass(frozen=True)
class ReadFrame:
    """What stands in the frame that was read for a stretch of a video."""

    start: float
    """Start of the stretch, in seconds."""
    end: float
    at: float
    """Time of the frame."""
    lines: tuple[ReadLine, ...] | None
    """None if the frame looks like the one before, which was not read again."""


@dataclass(frozen=True)
class ReadPart:
    """What was read of a part of a file."""

    done: float
    """Seconds of the file that are read after this part; the next one begins there."""
    frames: tuple[ReadFrame, ...]


@dataclass(frozen=True)
class ScreenLine:
    """A line that stands in the picture for some time."""

    start: float
    """First sight, in seconds."""
    end: float
    """Last sight."""
    text: str
    at: float
    """Time of the frame in which it was read best."""
    box: Box
    """Where it stands in that frame."""
    score: float
    """How sure the reader is of it, 0 to 1."""


def frame_as_json(frame: ReadFrame) -> list[Any]:
    """A frame as values for JSON."""
    lines = None if frame.lines is None else [[line.text, *line.box, line.score] for line in frame.lines]
    return [frame.start, frame.end, frame.at, lines]


def frame_of_json(values: Sequence[Any]) -> ReadFrame:
    """The frame that :func:`frame_as_json` wrote.

    >>> frame = ReadFrame(0.0, 4.0, 2.0, (ReadLine("EXIT", Box(0.1, 0.2, 0.3, 0.1), 0.99),))
    >>> frame_of_json(frame_as_json(frame)) == frame
    True
    """
    start, end, at, lines = values
    read = None if lines is None else tuple(ReadLine(line[0], Box(*line[1:5]), line[5]) for line in lines)
    return ReadFrame(start, end, at, read)
