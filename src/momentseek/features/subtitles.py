"""What is said in the videos of a data folder, as text: the preprocessed subtitles of TVQA and TVR.

    {"vid_name": "castle_s01e01_seg02_clip_00", "sub": [{"text": "Beckett: Hello.", "start": 0.5, "end": 1.9}, …]}

One object per line; a video without lines is silent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from momentseek.errors import MomentseekError
from momentseek.formats.document import open_document


class SubtitleLine(NamedTuple):
    """A line that is said, with its times in seconds."""

    start: float
    end: float
    text: str


def read_subtitles(path: Path) -> dict[str, tuple[SubtitleLine, ...]]:
    """Read the lines of every video, in order of their times."""
    found: dict[str, tuple[SubtitleLine, ...]] = {}
    entries = open_document(path).records
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("vid_name"), str):
            raise MomentseekError(f"{path}: line {number} names no video; each line is {EXPECTED}")
        lines = entry.get("sub")
        if not isinstance(lines, list):
            raise MomentseekError(f"{path}: line {number} has no list of subtitles; each line is {EXPECTED}")
        if entry["vid_name"] in found:
            raise MomentseekError(f"{path}: has the video {entry['vid_name']} twice; keep one line of each")
        found[entry["vid_name"]] = tuple(sorted(_line(line, path, number) for line in lines))
    if not found:
        raise MomentseekError(f"{path}: holds no subtitles; each line is {EXPECTED}")
    return found


EXPECTED = '{"vid_name": …, "sub": [{"text": …, "start": …, "end": …}]}'


def _line(line: Any, path: Path, number: int) -> SubtitleLine:
    if isinstance(line, Mapping) and isinstance(line.get("text"), str):
        times = [line.get("start"), line.get("end")]
        if all(isinstance(t, int | float) and not isinstance(t, bool) and math.isfinite(t) for t in times):
            return SubtitleLine(float(times[0]), float(times[1]), line["text"])  # type: ignore[arg-type]
    raise MomentseekError(f"{path}: line {number} has a subtitle without text or times; each line is {EXPECTED}")
