"""From lines in single frames to lines with times: what neighbouring frames show alike is one line.

A reader errs now and then, in a letter or by missing a line. So lines are the same if their letters are nearly the same
in the same place, a frame in which a line is missing does not end it, and of several readings the one counts that was
made most often and most surely.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from momentseek.lettering.line import ReadFrame, ReadLine, ScreenLine

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
    sights: list[tuple[float, ReadLine]] = field(default_factory=list)
    missed: int = 0

    def is_like(self, line: ReadLine) -> bool:
        _, last = self.sights[-1]
        one, other = letters(last.text), letters(line.text)
        if one == other:
            return True
        if last.box.overlap(line.box) < MIN_OVERLAP:
            return False
        return SequenceMatcher(None, one, other, autojunk=False).ratio() >= MIN_LIKENESS

    def whole(self) -> ScreenLine:
        votes: dict[str, float] = {}
        for _, line in self.sights:
            key = letters(line.text)
            votes[key] = votes.get(key, 0.0) + line.score
        chosen = max(votes, key=lambda key: votes[key])
        at, best = max((sight for sight in self.sights if letters(sight[1].text) == chosen), key=lambda s: s[1].score)
        return ScreenLine(self.start, self.end, best.text, at, best.box, best.score)


def merge_lines(frames: Iterable[ReadFrame]) -> list[ScreenLine]:
    """The lines of a video, by time and from the top down, each from its first to its last sight."""
    open_lines: list[_OpenLine] = []
    done: list[ScreenLine] = []
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
    return sorted(done, key=lambda line: (line.start, line.box.top, line.box.left, line.text))


def letters(text: str) -> str:
    """A text by what a reader is likely to see again: its letters and digits, whatever their case.

    >>> letters("Platform 9, King's Cross")
    'platform9kingscross'
    """
    return "".join(c for c in text.casefold() if c.isalnum())
