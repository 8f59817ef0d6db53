"""Tables for people: aligned plain text, whatever characters the cells hold."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

GAP = "  "


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, align: str = "lr") -> str:
    """Columns set side by side, two spaces apart, without trailing spaces.

    ``align`` has one letter per column, ``l``, ``r`` or ``c``; its last letter serves all further columns.

    >>> print(text_table(["run", "NDCG@10", "NDCG@20"], [["ours", "0.3581ᵇ", "0.41"], ["a longer name", "0.3", "0.4"]]))
    run            NDCG@10  NDCG@20
    ours           0.3581ᵇ     0.41
    a longer name      0.3      0.4
    """
    lines = [list(header), *map(list, rows)]
    if any(len(line) != len(header) for line in lines):
        raise ValueError("every row needs as many cells as the header")
    sides = (align + align[-1:] * len(header))[: len(header)]
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        GAP.join(_pad(cell, w, side) for cell, w, side in zip(line, widths, sides, strict=True)).rstrip()
        for line in lines
    )


def width(text: str) -> int:
    """Terminal columns that ``text`` takes: 0 for combining marks, 2 for wide East Asian characters.

    >>> width("0.41ᵃᵇ"), width("e\u0301"), width("東京")
    (6, 1, 4)
    """
    return sum(_columns(c) for c in text) if not text.isascii() else len(text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _pad(cell: str, to: int, side: str) -> str:
    room = to - width(cell)
    left = {"l": 0, "r": room, "c": room // 2}[side]
    return " " * left + cell + " " * (room - left)
