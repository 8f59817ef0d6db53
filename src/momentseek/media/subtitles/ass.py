r"""Advanced SubStation Alpha and SSA: ``Dialogue:`` lines whose columns a ``Format:`` line names.

Override codes are in braces; ``\N`` breaks the line. Drawings (``{\p1}m 0 0 l …``) are removed from the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from momentseek.media.subtitles.cues import TIME_PATTERN, Cue, seconds

SUFFIXES = (".ass", ".ssa")
EVENT_COLUMNS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")
"""Names of the columns in their usual order, for files that lost their ``Format:`` line."""
_OVERRIDE = re.compile(r"\{([^{}]*)\}")
_DRAWING = re.compile(r"\\p(\d+)")
_TIME = re.compile(TIME_PATTERN)


def parse(text: str) -> Iterator[Cue]:
    r"""Yield cues without override codes; comments and drawings are skipped.

    >>> script = "[Events]\nFormat: Layer, Start, End, Style, Text\n"
    >>> (cue,) = parse(script + r"Dialogue: 0,0:00:01.00,0:00:02.50,Default,{\i1}Well,{\i0}\Nhello")
    >>> cue.start, cue.end, cue.text
    (1.0, 2.5, 'Well,\nhello')
    """
    columns: tuple[str, ...] = EVENT_COLUMNS
    events = "[events]" not in text.lower()
    for line in text.splitlines():
        mark, colon, rest = line.lstrip().partition(":")
        if not colon:
            if mark.startswith("["):
                events = mark.strip().lower() == "[events]"
            continue
        mark = mark.lower()
        if events and mark == "format":
            columns = tuple(name.strip().lower() for name in rest.split(",")[:32])
        elif events and mark == "dialogue":
            values = dict(zip(columns, rest.split(",", len(columns) - 1), strict=False))
            start, end = (_time(values.get(name, "")) for name in ("start", "end"))
            if start is not None and end is not None:
                yield Cue(start, end, plain(values.get("text", "")))


def plain(text: str) -> str:
    r"""Return a text without override codes and drawings.

    >>> plain(r"{\k20}ka{\k30}ra{\k20}oke\Ntime {\p1}m 0 0 l 9 9{\p0}\hnow")
    'karaoke\ntime  now'
    """
    kept, drawing, at = [], False, 0
    for match in _OVERRIDE.finditer(text):
        if not drawing:
            kept.append(text[at : match.start()])
        modes = _DRAWING.findall(match[1])
        drawing = int(modes[-1][:9]) > 0 if modes else drawing
        at = match.end()
    if not drawing:
        kept.append(text[at:])
    return "".join(kept).replace("\\N", "\n").replace("\\n", "\n").replace("\\h", " ").strip()


def _time(value: str) -> float | None:
    value = value.strip()
    return seconds(value) if len(value) < 40 and _TIME.fullmatch(value) else None
