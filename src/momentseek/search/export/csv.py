"""Hits as a table for spreadsheets: one row each, RFC 4180, UTF-8.

Spreadsheets run a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, and file names, captions and queries
come from anywhere. Such a text gets an apostrophe in front, which spreadsheets take as "this is text". JSON carries the
same texts unchanged.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from momentseek.media.edit_lists import ExportText
from momentseek.search.export.kind import EXPORT_KINDS, ExportKind, Thumbnail
from momentseek.search.hit import Hit

CSV_COLUMNS = ("rank", "level", "video", "start", "end", "score", "peak", "duration", "rate", "said", "path", "query")


def render(hits: Sequence[Hit], query: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """Render a table of hits; times in seconds, ``rate`` as a fraction of frames per second."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")  # with "\n" alone a carriage return in a name is not quoted
    writer.writerow(CSV_COLUMNS)
    for hit in hits:
        said = " ".join(cue.text for cue in hit.said)
        times = [f"{time:.3f}" for time in (hit.start, hit.end)]
        row = [hit.rank, hit.level, safe_cell(hit.name), *times, f"{hit.score:.6g}", f"{hit.peak:.3f}"]
        writer.writerow(
            [*row, f"{hit.duration:.3f}", hit.rate, safe_cell(said), safe_cell(str(hit.path)), safe_cell(query)]
        )
    return ExportText(out.getvalue())


def safe_cell(text: str) -> str:
    """Make a text that no spreadsheet runs as a formula.

    >>> safe_cell("=HYPERLINK(1)"), safe_cell("- Who is there?"), safe_cell("kitchen.mp4")
    ("'=HYPERLINK(1)", "'- Who is there?", 'kitchen.mp4')
    """
    return "'" + text if text.lstrip(" \0")[:1] in FORMULA_CHARACTERS else text


FORMULA_CHARACTERS = frozenset("=+-@\t\r\n|%＝＋－＠")
"""First characters that make a formula, in some spreadsheet; the last ones are their full-width forms."""


EXPORT_KINDS.add("csv", ExportKind((".csv",), "a table for spreadsheets", render))
