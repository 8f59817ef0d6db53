"""CMX 3600, the edit decision list every editing program reads.

One event per excerpt: number, reel, track, a cut, then source in, source out, record in and record out as timecode. It
knows one frame rate for the whole list and none of it is written down, so a comment says which; source timecode counts
from 00:00:00:00 at the file's first frame.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.media.edit_lists import rates
from momentseek.media.edit_lists.excerpt import Edit, EditList, EditListText, Excerpt
from momentseek.media.edit_lists.locations import path_of, url_of
from momentseek.media.edit_lists.timecode import can_drop, frame_of, timecode

RECORD_START = "01:00:00"
"""By custom a timeline begins at its first hour."""
_EVENT = re.compile(
    r"(\d{1,6})\s+(\S+)\s+(\S+)\s+(C)\s+" + r"\s+".join([r"(\d\d:\d\d:\d\d[:;.,]\d{2,3})"] * 4) + r"\s*"
)
_COMMENT = re.compile(r"\*\s*([A-Z ]{1,40}):\s?(.*)")


def write_edl(
    excerpts: Sequence[Excerpt], title: str, *, rate: Fraction | None = None, drop: bool = False
) -> EditListText:
    """The excerpts one after another.

    ``rate`` is the timeline's; without it, the one most sources are edited at. Excerpts of sources with another rate
    are rounded to its frames, and a comment and a note say so.
    """
    rate = rates.commonest(e.rate for e in excerpts) if rate is None else rate
    if drop and not can_drop(rate):
        raise MomentseekError(f"no drop-frame timecode at {rates.spoken(rate)} frames per second; leave it non-drop")
    lines = [f"TITLE: {_line(title)[:70]}", f"FCM: {'DROP FRAME' if drop else 'NON-DROP FRAME'}"]
    said = f"* FRAME RATE: {rate} ({rates.spoken(rate)})"
    lines.append("" if excerpts else said)  # comments belong to events: some programs refuse one before the first
    record = frame_of(RECORD_START + (";00" if drop else ":00"), rate)
    reels = _reels(excerpts)
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
        if rates.editable(excerpt.rate) != rate:
            lines.append(f"* SOURCE FRAME RATE: {excerpt.rate} ({rates.spoken(excerpt.rate)})")
            others += 1
        lines.append("")
        record += last - first
    notes = []
    if others:
        notes.append(
            f"{others} of {len(excerpts)} excerpts come from videos of another frame rate than the list's "
            f"{rates.spoken(rate)}; their ends are rounded to its frames"
        )
    if len(excerpts) > 999:
        notes.append("more than 999 events; old programs read only the first 999")
    return EditListText("\n".join(lines), tuple(notes))


def read_edl(text: str, rate: Fraction | None = None) -> EditList:
    """The cuts of an edit list; ``rate`` is needed where the list does not carry our comment.

    >>> text = "TITLE: x\\n001  AX  V  C  00:00:01:00 00:00:02:00 01:00:00:00 01:00:01:00\\n* FROM CLIP NAME: a.mp4\\n"
    >>> read_edl(text, Fraction(25)).edits
    (Edit(path=None, name='a.mp4', start=25, end=50, rate=Fraction(25, 1), record=90000, title=''),)
    """
    title = ""
    events: list[tuple[list[str], dict[str, str]]] = []
    for line in text.splitlines():
        event, comment = _EVENT.fullmatch(line.strip()), _COMMENT.fullmatch(line.strip())
        if line.startswith("TITLE:"):
            title = line[6:].strip()
        elif event is not None:
            events.append(([*event.groups()[1:3], *event.groups()[4:]], {}))
        elif comment is not None and comment[1] == "FRAME RATE" and rate is None:
            rate = rates.parsed(comment[2].split()[0] if comment[2].split() else "")
        elif comment is not None and events:
            events[-1][1].setdefault(comment[1], comment[2])
    if rate is None:
        raise MomentseekError("the edit list does not say its frame rate; give it")
    return EditList(title, rate, tuple(_edits(events, rate)))


def _edits(events: list[tuple[list[str], dict[str, str]]], rate: Fraction) -> Iterator[Edit]:
    for (reel, _track, *codes), comments in events:
        start, end, record, _ = (frame_of(code, rate) for code in codes)
        source = comments.get("SOURCE FILE")
        path = None if source is None else path_of(source) if source.startswith("file:") else Path(source)
        yield Edit(path, comments.get("FROM CLIP NAME", reel), start, end, rate, record, comments.get("COMMENT", ""))


def _reels(excerpts: Sequence[Excerpt]) -> dict[Path, str]:
    """A reel name of eight capitals and digits per source, none twice."""
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
    return plain if plain == _line(plain) and not plain.startswith("file:") else url_of(path)
