"""Captions that scroll repeat themselves: each cue shows the last line again, or the same line grown by a word.

YouTube's automatic captions do the first (and show every finished line once more for 10 ms), live television does the
second. Read naively, every sentence is there two or three times, with the wrong times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from momentseek.media.cue import Cue

MAX_TOUCHING_SECONDS = 0.25
"""Seconds between two cues that still count as one display."""
MAX_LINE_CHARACTERS = 400
"""Characters up to which a line may grow word by word."""


@dataclass
class _Line:
    start: float
    end: float
    text: str


def unroll(cues: Iterable[tuple[float, float, list[str]]]) -> list[Cue]:
    """Keep each line once, from when it first appears; ``cues`` are ``(start, end, lines)`` sorted by start.

    >>> rolled = [(0, 2, ["hello everyone"]), (2, 4, ["hello everyone", "welcome back"]), (4, 6, ["welcome back"])]
    >>> [(cue.start, cue.end, cue.text) for cue in unroll(rolled)]
    [(0, 2, 'hello everyone'), (2, 6, 'welcome back')]
    >>> [cue.text for cue in unroll([(0, 1, ["so"]), (1, 2, ["so we"]), (2, 3, ["so we went"])])]
    ['so we went']
    """
    found: list[_Line] = []
    before: list[str] = []
    until = float("-inf")
    for start, end, lines in cues:
        touches = bool(found) and start <= until + MAX_TOUCHING_SECONDS
        seen, grown = _match_repeated(before, lines) if touches else (0, "")
        if seen:
            last = found[-1]
            if grown and len(last.text) + len(grown) <= MAX_LINE_CHARACTERS:
                last.text += grown
                grown = ""
            fresh = [*filter(None, [grown.strip()]), *lines[seen:]]
            last.end = max(last.end, end) if not fresh else max(min(last.end, start), last.start)
        else:
            fresh = lines
        if fresh:
            found.append(_Line(start, end, " ".join(fresh)))
        before = lines
        until = max(until, end) if touches else end
    return [Cue(shown.start, shown.end, shown.text) for shown in found]


def _match_repeated(before: list[str], lines: list[str]) -> tuple[int, str]:
    """How many of the first ``lines`` are the last ones shown before, and what the last of them has grown by."""
    for count in range(min(len(before), len(lines), 8), 0, -1):
        if before[-count:-1] == lines[: count - 1] and lines[count - 1].startswith(before[-1]):
            return count, lines[count - 1][len(before[-1]) :]
    return 0, ""
