"""Lines of text in frames: which frames to read, lines of single frames, and lines of a video with their times.

OCR sometimes gets a letter wrong or misses a line. So lines count as the same if their letters are nearly the same in
the same place, one missing frame does not end a line, and the most frequent and most confident reading of a line wins.
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
    """The box of a line, as fractions of the frame's width and height."""

    left: float
    top: float
    width: float
    height: float

    def overlap(self, other: Box) -> float:
        """Return the intersection over union of two boxes.

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
    """A line of text in one frame."""

    text: str
    box: Box
    score: float
    """Confidence of the OCR model, 0 to 1."""


@dataclass(frozen=True)
class OcrFrame:
    """The text in the frame that was read for an interval of a video."""

    start: float
    """Start of the interval, in seconds."""
    end: float
    at: float
    """Time of the frame."""
    lines: tuple[OcrLine, ...] | None
    """Its lines; None if the frame looks like the one before and was not read."""


@dataclass(frozen=True)
class OcrPart:
    """The text read in a part of a file."""

    done: float
    """End of this part, in seconds of the file; the next part starts there."""
    frames: tuple[OcrFrame, ...]


def frame_as_json(frame: OcrFrame) -> list[Any]:
    """Return a frame as values for JSON."""
    lines = None if frame.lines is None else [[line.text, *line.box, line.score] for line in frame.lines]
    return [frame.start, frame.end, frame.at, lines]


def frame_of_json(values: Sequence[Any]) -> OcrFrame:
    """Return the frame that :func:`frame_as_json` wrote.

    >>> frame = OcrFrame(0.0, 4.0, 2.0, (OcrLine("EXIT", Box(0.1, 0.2, 0.3, 0.1), 0.99),))
    >>> frame_of_json(frame_as_json(frame)) == frame
    True
    """
    start, end, at, lines = values
    read = None if lines is None else tuple(OcrLine(line[0], Box(*line[1:5]), line[5]) for line in lines)
    return OcrFrame(start, end, at, read)


MIN_LIKENESS = 0.7
"""Two lines in one place with at least this share of common letters are the same line."""
MIN_OVERLAP = 0.3
"""Two boxes with at least this intersection over union are in one place."""
MAX_MISSED_FRAMES = 1
"""Number of consecutive frames in which a line may be missing."""


@dataclass
class _OpenLine:
    """A line that may appear in later frames too."""

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
    """Merge the lines of frames into lines of a video, in order of time and from top to bottom."""
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
    """Return the letters and digits of a text in lower case, which OCR reads reliably.

    >>> letters("Platform 9, King's Cross")
    'platform9kingscross'
    """
    return "".join(c for c in text.casefold() if c.isalnum())


SLOT_SECONDS = 4.0
"""Longest interval of a shot for which one frame is read; burnt-in subtitles change more often."""
MIN_SLOT_SECONDS = 1.0
"""Shortest interval; shorter shots share a frame."""
STILL_BLOCKS = 24
"""Number of blocks along each side of a frame; their mean brightness shows whether anything has changed."""
MAX_STILL_DIFFERENCE = 2.0
"""Largest change of a block's brightness, of 255, that counts as noise; new letters cause a larger change."""


def frame_slots(duration: float, cuts: Sequence[float], every: float = SLOT_SECONDS) -> list[Slot]:
    """Split a video's shots into intervals of at most ``every`` seconds.

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
    """Return the mean brightness of the blocks of a frame.

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
    """Whether a frame shows nothing new since the last frame that was read."""
    return before is not None and bool(np.abs(blocks - before).max() <= MAX_STILL_DIFFERENCE)
