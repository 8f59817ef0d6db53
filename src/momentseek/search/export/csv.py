"""Hits as a table for spreadsheets: one row each, RFC 4180, UTF-8. Only JSON has all texts unchanged."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from momentseek.core.reports import safe_cell
from momentseek.media.edit_lists import ExportText
from momentseek.search.export import EXPORT_KINDS, ExportKind, Thumbnail
from momentseek.search.hit import Hit, heard_labels

CSV_COLUMNS = (
    "rank",
    "level",
    "video",
    "start",
    "end",
    "score",
    "peak",
    "duration",
    "rate",
    "said",
    "written",
    "described",
    "heard",
    "path",
    "query",
)


def render(hits: Sequence[Hit], query: str, thumbnail: Thumbnail | None = None) -> ExportText:
    """Render a table of hits; times in seconds, ``rate`` as a fraction of frames per second."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")  # with "\n" alone a carriage return in a name is not quoted
    writer.writerow(CSV_COLUMNS)
    for hit in hits:
        said = " ".join(cue.text for cue in hit.said)
        written = " / ".join(line.text for line in hit.written)
        described = " ".join(caption.text for caption in hit.described)
        heard = ", ".join(heard_labels(hit))
        times = [f"{time:.3f}" for time in (hit.start, hit.end)]
        row = [hit.rank, hit.level, safe_cell(hit.name), *times, f"{hit.score:.6g}", f"{hit.peak:.3f}"]
        writer.writerow(
            [
                *row,
                f"{hit.duration:.3f}",
                hit.rate,
                *(safe_cell(text) for text in (said, written, described, heard, str(hit.path), query)),
            ]
        )
    return ExportText(out.getvalue())


EXPORT_KINDS.add("csv", ExportKind((".csv",), "a table for spreadsheets", render))
