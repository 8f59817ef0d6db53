"""Cells of CSV files that people open in spreadsheets, where a text must not become a formula.

Spreadsheets run a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, and names, captions and queries come
from anywhere. Such a text gets an apostrophe in front, which spreadsheets take as "this is text". Numbers stay numbers,
and what reads such a file again takes the apostrophe away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FORMULA_CHARACTERS = frozenset("=+-@\t\r\n|%＝＋－＠")
"""First characters that make a formula, in some spreadsheet; the last ones are their full-width forms."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def safe_cell(text: str) -> str:
    """Make a text that no spreadsheet runs as a formula.

    >>> safe_cell("=HYPERLINK(1)"), safe_cell("- Who is there?"), safe_cell("kitchen.mp4"), safe_cell("-12.5")
    ("'=HYPERLINK(1)", "'- Who is there?", 'kitchen.mp4', '-12.5')
    """
    return "'" + text if _is_formula(text) else text


def plain_cell(cell: str) -> str:
    """The text that ``safe_cell`` made a cell of.

    >>> plain_cell("'=HYPERLINK(1)"), plain_cell("'tis"), plain_cell(safe_cell("'=x"))
    ('=HYPERLINK(1)', "'tis", "'=x")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def safe_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with all its texts made safe; other values stay as they are.

    >>> safe_row({"name": "@sum", "share": -0.5})
    {'name': "'@sum", 'share': -0.5}
    """
    return {key: safe_cell(value) if isinstance(value, str) else value for key, value in row.items()}


def _is_formula(text: str) -> bool:
    """Whether some spreadsheet may run a text, with or without the apostrophes in front of it."""
    return text.lstrip(" \0'")[:1] in FORMULA_CHARACTERS and not _NUMBER.fullmatch(text)
