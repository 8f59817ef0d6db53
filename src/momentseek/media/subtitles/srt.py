"""SubRip (SRT): a number, a line of times, lines of text, a blank line. Many files deviate from this."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from momentseek.media.subtitles.cues import TIME_PATTERN, Cue, seconds, stamp

SUFFIXES = (".srt",)
_TIMES = re.compile(
    rf"\s{{0,9}}({TIME_PATTERN})\s{{0,9}}(?:-{{1,3}}\s?-?>|–>|—>|→)\s{{0,9}}({TIME_PATTERN})(?:\s.*)?", re.DOTALL
)


def times(line: str) -> tuple[float, float] | None:
    """Return start and end of a line of times; positions and settings after them are ignored.

    >>> times("00:00:01,000 --> 00:00:02,500  X1:100 X2:600")
    (1.0, 2.5)
    """
    if ">" not in line and "→" not in line:
        return None
    match = _TIMES.fullmatch(line)
    if match is None:
        return None
    start, end = seconds(match[1]), seconds(match[2])
    return None if start is None or end is None else (start, end)


def parse(text: str) -> Iterator[Cue]:
    r"""Yield the cues of an SRT file unchanged. Text runs to the next line of times, so blank lines do not end a cue.

    >>> found = parse("1\n00:00:01,000 --> 00:00:02,000\nHello\n\n2\n00:00:03,000 --> 00:00:04,000\nWorld\n")
    >>> [(cue.start, cue.end, cue.text) for cue in found]
    [(1.0, 2.0, 'Hello'), (3.0, 4.0, 'World')]
    """
    span: tuple[float, float] | None = None
    lines: list[str] = []
    number = ""
    for line in text.splitlines():
        found = times(line)
        if found is None:
            lines.append(line)
            continue
        number = _number(lines, number)
        if span is not None:
            yield Cue(*span, "\n".join(lines[:-1] if number else lines).strip())
        span, lines = found, []
    if span is not None:
        yield Cue(*span, "\n".join(lines).strip())


def parse_blocks(lines: Iterable[str], times_of: Callable[[str], tuple[float, float] | None]) -> Iterator[Cue]:
    """Yield the cues of a file in which a blank line, or another line of times, ends a cue."""
    span: tuple[float, float] | None = None
    text: list[str] = []
    for line in chain(lines, [""]):
        found = times_of(line)
        if found is None and line:
            text.append(line)
            continue
        if span is not None:
            yield Cue(*span, "\n".join(text).strip())
        span, text = found, []


def srt_text(cues: Iterable[Cue]) -> str:
    r"""Return cues as SRT. Blank lines and arrows in a text would end its cue, so they are removed.

    >>> srt_text([Cue(1.0, 2.5, "Anybody home?")])
    '1\n00:00:01,000 --> 00:00:02,500\nAnybody home?\n'
    """
    return "\n".join(
        f"{number}\n{stamp(cue.start)} --> {stamp(cue.end)}\n{_writable(cue.text)}\n"
        for number, cue in enumerate(cues, start=1)
    )


def _number(lines: list[str], before: str) -> str:
    """Return the number of the next cue: digits on their own line after a blank line, or one more than ``before``."""
    last = lines[-1].strip() if lines else ""
    if not (last.isdecimal() and len(last) < 10):
        return ""
    apart = len(lines) == 1 or not lines[-2].strip()
    return last if apart or (before != "" and int(last) == int(before) + 1) else ""


def _writable(text: str) -> str:
    lines = (line.strip() for line in text.replace("-->", "→").splitlines())
    return "\n".join(line for line in lines if line)
