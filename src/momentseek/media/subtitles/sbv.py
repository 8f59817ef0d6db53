"""SBV, YouTube's variant of SubViewer: ``0:00:01.000,0:00:02.500``, lines of text, a blank line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from momentseek.media.subtitles.cues import Cue, seconds
from momentseek.media.subtitles.srt import parse_blocks

SUFFIXES = (".sbv", ".sub")
_STAMP = r"-?\d{1,5}:\d{1,2}:\d{1,2}[.:]\d{1,9}"
_TIMES = re.compile(rf"\s{{0,9}}({_STAMP})\s?,\s?({_STAMP})\s{{0,9}}")


def parse(text: str) -> Iterator[Cue]:
    r"""Yield the cues of an SBV file unchanged, but with ``[br]`` as a line break.

    >>> [(cue.start, cue.end, cue.text) for cue in parse("0:00:01.000,0:00:02.500\nAnybody[br]home?\n\n")]
    [(1.0, 2.5, 'Anybody\nhome?')]
    """
    for cue in parse_blocks((line if line.strip() else "" for line in text.splitlines()), _times):
        yield replace(cue, text=cue.text.replace("[br]", "\n").strip())


def _times(line: str) -> tuple[float, float] | None:
    match = _TIMES.fullmatch(line) if ":" in line else None
    start, end = (seconds(match[1]), seconds(match[2])) if match else (None, None)
    return None if start is None or end is None else (start, end)
