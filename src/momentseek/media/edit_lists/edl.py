"""CMX 3600, the edit decision list every editing program reads.

One event per excerpt: number, reel, track, a cut, then source in, source out, record in and record out as timecode. It
knows one frame rate for the whole list and none of it is written down, so a comment says which; source timecode counts
from 00:00:00:00 at the file's first frame.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from momentseek.core.errors import MomentseekError
from momentseek.media.edit_lists.timeline import (
    Excerpt,
    ExportText,
    can_drop,
    commonest_rate,
    editing_rate,
    file_url,
    frame_of,
    rate_text,
    timecode,
)

RECORD_START = "01:00:00"
"""Timecode at which the timeline begins, by custom its first hour."""


def write_edl(
    excerpts: Sequence[Excerpt], title: str, *, rate: Fraction | None = None, drop: bool = False
) -> ExportText:
    """A CMX 3600 edit list of the excerpts, one after another.

    ``rate`` is the timeline's; without it, the one most sources are edited at. Excerpts of sources with another rate
    are rounded to its frames, and a comment and a note say so.
    """
    rate = commonest_rate(e.rate for e in excerpts) if rate is None else rate
    if drop and not can_drop(rate):
        raise MomentseekError(f"no drop-frame timecode at {rate_text(rate)} frames per second; leave it non-drop")
    lines = [f"TITLE: {_line(title)[:70]}", f"FCM: {'DROP FRAME' if drop else 'NON-DROP FRAME'}"]
    said = f"* FRAME RATE: {rate} ({rate_text(rate)})"
    lines.append("" if excerpts else said)  # comments belong to events: some programs refuse one before the first
    record = frame_of(RECORD_START + (";00" if drop else ":00"), rate)
    reels = reel_names(excerpts)
    others = 0
    for number, excerpt in enumerate(excerpts, start=1):
        first, last = excerpt.frames(rate)
        codes = (timecode(frame, rate, drop) for frame in (first, last, record, record + last - first))
        lines.append(f"{number:03d}  {reels[excerpt.path]:<8} V     C        {' '.join(codes)}")
        lines += [f"* FROM CLIP NAME: {_line(excerpt.name)}", f"* SOURCE FILE: {_source(excerpt.path)}"]
        if number == 1:
            lines.append(said)
        if excerpt.title:
            lines.append(f"* COMMENT: {_line(excerpt.title)}")
        if editing_rate(excerpt.rate) != rate:
            lines.append(f"* SOURCE FRAME RATE: {excerpt.rate} ({rate_text(excerpt.rate)})")
            others += 1
        lines.append("")
        record += last - first
    notes = []
    if others:
        notes.append(
            f"{others} of {len(excerpts)} excerpts come from videos of another frame rate than the list's "
            f"{rate_text(rate)}; their ends are rounded to its frames"
        )
    if len(excerpts) > 999:
        notes.append("more than 999 events; old programs read only the first 999")
    return ExportText("\n".join(lines), tuple(notes))


def reel_names(excerpts: Sequence[Excerpt]) -> dict[Path, str]:
    """A reel name of at most eight capitals and digits per source, none twice."""
    found: dict[Path, str] = {}
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    for path in dict.fromkeys(excerpt.path for excerpt in excerpts):
        base = reel = re.sub(r"[^A-Z0-9]", "", path.stem.upper())[:8] or "REEL"
        while reel in taken:
            numbers[base] += 1
            number = str(numbers[base] + 1)
            reel = base[: 8 - len(number)] + number
        taken.add(reel)
        found[path] = reel
    return found


def _line(text: str) -> str:
    """Text on one line: a line break would begin another statement."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _source(path: Path) -> str:
    """The path as it is, or as an address where it would not survive on one line."""
    plain = str(path)
    return plain if plain == _line(plain) and not plain.startswith("file:") else file_url(path)
