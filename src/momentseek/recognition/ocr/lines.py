"""Lines of text in pictures: which frames are read, lines of single frames, and lines of a video with their times.

OCR errs now and then, in a letter or by missing a line. So lines are the same if their letters are nearly the same in
the same place, a frame in which a line is missing does not end it, and of several readings the one counts that was made
most often and most surely.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from momentseek.media.decode import Slot
from momentseek.media.pixels import Pixels
from momentseek.media.subtitles.cues import Cue


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
class OcrLine:
    """A line that stands in one frame."""

    text: str
    box: Box
    score: float
    """How sure the OCR model is, 0 to 1."""


@dataclass(frozen=True)
class OcrFrame:
    """What stands in the frame that was read for a stretch of a video."""

    start: float
    """Start of the stretch, in seconds."""
    end: float
    at: float
    """Time of the frame."""
    lines: tuple[OcrLine, ...] | None
    """None if the frame looks like the one before, which was not read again."""


@dataclass(frozen=True)
class OcrPart:
    """What was read of a part of a file."""

    done: float
    """Seconds of the file that are read after this part; the next one begins there."""
    frames: tuple[OcrFrame, ...]


def frame_as_json(frame: OcrFrame) -> list[Any]:
    """A frame as values for JSON."""
    lines = None if frame.lines is None else [[line.text, *line.box, line.score] for line in frame.lines]
    return [frame.start, frame.end, frame.at, lines]


def frame_of_json(values: Sequence[Any]) -> OcrFrame:
    """The frame that :func:`frame_as_json` wrote.

    >>> frame = OcrFrame(0.0, 4.0, 2.0, (OcrLine("EXIT", Box(0.1, 0.2, 0.3, 0.1), 0.99),))
    >>> frame_of_json(frame_as_json(frame)) == frame
    True
    """
    start, end, at, lines = values
    read = None if lines is None else tuple(OcrLine(line[0], Box(*line[1:5]), line[5]) for line in lines)
    return OcrFrame(start, end, at, read)


MIN_LIKENESS = 0.7
"""Share of letters in common from which two lines in one place are one."""
MIN_OVERLAP = 0.3
"""Intersection over union from which two boxes are one place."""
MAX_MISSED_FRAMES = 1
"""Frames in a row in which a line may be missing."""


@dataclass
class _OpenLine:
    """A line while it may still be seen again."""

    start: float
    end: float
    sights: list[tuple[float, OcrLine]] = field(default_factory=list)
    missed: int = 0

    def is_like(self, line: OcrLine) -> bool:
        _, last = self.sights[-1]
        one, other = letters(last.text), letters(line.text)
        if one == other:
            return True
        if last.box.overlap(line.box) < MIN_OVERLAP:
            return False
        return SequenceMatcher(None, one, other, autojunk=False).ratio() >= MIN_LIKENESS

    def whole(self) -> Cue:
        votes: dict[str, float] = {}
        for _, line in self.sights:
            key = letters(line.text)
            votes[key] = votes.get(key, 0.0) + line.score
        chosen = max(votes, key=lambda key: votes[key])
        at, best = max((sight for sight in self.sights if letters(sight[1].text) == chosen), key=lambda s: s[1].score)
        return Cue(self.start, self.end, best.text, frame=at, score=best.score, box=best.box)


def merge_lines(frames: Iterable[OcrFrame]) -> list[Cue]:
    """The lines of a video, by time and from the top down, each from its first to its last sight."""
    open_lines: list[_OpenLine] = []
    done: list[Cue] = []
    for frame in frames:
        if frame.lines is None:
            for one in open_lines:
                one.end = one.end if one.missed else frame.end
            continue
        rest = list(frame.lines)
        for one in open_lines:
            same = next((line for line in rest if one.is_like(line)), None)
            if same is None:
                one.missed += 1
                continue
            rest.remove(same)
            one.sights.append((frame.at, same))
            one.end, one.missed = frame.end, 0
        done += [one.whole() for one in open_lines if one.missed > MAX_MISSED_FRAMES]
        open_lines = [one for one in open_lines if one.missed <= MAX_MISSED_FRAMES]
        open_lines += [_OpenLine(frame.start, frame.end, [(frame.at, line)]) for line in rest]
    done += [one.whole() for one in open_lines]
    return sorted(done, key=_reading_order)


def _reading_order(line: Cue) -> tuple[float, float, float, str]:
    left, top, _, _ = line.box or (0.0, 0.0, 0.0, 0.0)
    return line.start, top, left, line.text


def letters(text: str) -> str:
    """A text by what OCR is likely to find again: its letters and digits, whatever their case.

    >>> letters("Platform 9, King's Cross")
    'platform9kingscross'
    """
    return "".join(c for c in text.casefold() if c.isalnum())


SLOT_SECONDS = 4.0
"""Longest stretch of a shot of which one frame is read; subtitles in the picture change more often."""
MIN_SLOT_SECONDS = 1.0
"""Shortest stretch: in quicker cuts, shots share a frame."""
STILL_BLOCKS = 24
"""Blocks along each side of a frame whose mean brightness shows whether anything has changed."""
MAX_STILL_DIFFERENCE = 2.0
"""Largest change of a block's brightness, of 255, that is noise: letters that appear change theirs by more."""


def frame_slots(duration: float, cuts: Sequence[float], every: float = SLOT_SECONDS) -> list[Slot]:
    """Stretches of ``every`` seconds at most that cover a video, within its shots.

    >>> frame_slots(10.0, [2.0, 2.3])
    [(0.0, 2.0), (2.0, 6.0), (6.0, 10.0)]
    """
    edges = [0.0]
    shortest = min(MIN_SLOT_SECONDS, every)
    for cut in sorted(cuts):
        if cut - edges[-1] >= shortest and duration - cut >= shortest:
            edges.append(float(cut))
    out: list[Slot] = []
    for start, end in zip(edges, [*edges[1:], duration], strict=True):
        parts = max(1, math.ceil((end - start) / every - 1e-9))
        inner = [start + (end - start) * k / parts for k in range(parts)] + [end]
        out += pairwise(inner)
    return out


def brightness_blocks(pixels: Pixels) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The mean brightness of the blocks of a frame.

    >>> brightness_blocks(np.full((48, 48, 3), 9, np.uint8)).shape
    (24, 24)
    """
    gray = pixels.mean(axis=2, dtype=np.float32)
    rows, columns = (np.linspace(0, side, STILL_BLOCKS + 1).astype(int)[:-1] for side in gray.shape)
    sums = np.add.reduceat(np.add.reduceat(gray, rows, axis=0), columns, axis=1)
    sizes = np.diff([*rows, gray.shape[0]])[:, None] * np.diff([*columns, gray.shape[1]])[None]
    return np.asarray(sums / np.maximum(sizes, 1), np.float32)


def is_still(
    blocks: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
    before: np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None,
) -> bool:
    """Whether a frame shows nothing that the one read last did not show."""
    return before is not None and bool(np.abs(blocks - before).max() <= MAX_STILL_DIFFERENCE)
