"""Results as people read them in a terminal: a table, and for each hit why it is there."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.search.explain import details, reason, sparkline
from momentseek.search.hit import Hit
from momentseek.search.query import Query
from momentseek.search.snippets import OFF, ON, snippets, tidy
from momentseek.tables import count, text_table, width

NARROWEST, WIDEST = 16, 60
"""Columns for what was said."""
NAME = 36
"""Columns for a video's name."""


def table(hits: Sequence[Hit], query: Query, *, columns: int = 120, bold: bool = False, explain: bool = False) -> str:
    """One row per hit: rank, level, when, which video, what was said, why."""
    said = snippets(hits, query, _room(hits, columns))
    header = ["#", "level", "when", "video", "why"]
    rows = [[str(h.rank), h.level, when(h), _name(h), reason(h)] for h in hits]
    if any(said):
        header.insert(4, "said")
        for row, text in zip(rows, said, strict=True):
            row.insert(4, text)
    lines = text_table(header, rows, align="rlrl").split("\n")
    out = [lines[0]]
    for line, hit in zip(lines[1:], hits, strict=True):
        out.append(line)
        out += [f"   also: {tidy(other)}" for other in hit.also]
        if explain:
            out += [f"   {text}" for text in (details(hit), *sparkline(hit).split("\n")) if text]
    return _marked("\n".join(out), bold)


def card(hit: Hit, query: Query, *, columns: int = 80, bold: bool = False, explain: bool = False) -> str:
    """One hit in a few lines, to stand below its picture."""
    (said,) = snippets([hit], query, columns - 3)
    lines = [f"{hit.rank}  {hit.level}  {when(hit)}  {_name(hit)}  {reason(hit)}"]
    lines += [f"   “{said}”"] * bool(said)
    lines += [f"   also: {tidy(other)}" for other in hit.also]
    if explain:
        lines += [f"   {text}" for text in (details(hit), *sparkline(hit).split("\n")) if text]
    return _marked("\n".join(lines), bold)


def remarks(hidden: int, note: str) -> str:
    """What the list does not show, in one line."""
    parts = [note] if note else []
    if hidden:
        parts.append(f"{count(hidden, 'weaker result')} hidden; show {'it' if hidden == 1 else 'them'}: --all")
    return "; ".join(parts)


def when(hit: Hit) -> str:
    """Start and end of a hit."""
    return f"{clock(hit.start)}–{clock(hit.end)}"


def clock(seconds: float) -> str:
    """A time as minutes and seconds, or with hours.

    >>> clock(59.96), clock(125.04), clock(3661.5)
    ('1:00.0', '2:05.0', '1:01:01.5')
    """
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{start}:{rest // 10:02d}.{rest % 10}"


def _name(hit: Hit) -> str:
    name = tidy(hit.name)
    if width(name) > NAME:
        while width(name) > NAME - 1:
            name = name[1:]
        name = f"…{name}"
    return name if hit.path.is_file() else f"{name} (not there now)"


def _room(hits: Sequence[Hit], columns: int) -> int:
    taken = max((width(_name(h)) + len(when(h)) + len(reason(h)) for h in hits), default=0) + 20
    return min(WIDEST, max(NARROWEST, columns - taken))


def _marked(text: str, bold: bool) -> str:
    return text.replace(ON, "\x1b[1m" if bold else "").replace(OFF, "\x1b[22m" if bold else "")
