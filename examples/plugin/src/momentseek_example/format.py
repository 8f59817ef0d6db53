"""``plain-csv``: predictions as a spreadsheet, with the columns query_id, video, start, end and score."""

from __future__ import annotations

import csv
import io

from momentseek.core.moments.run import Run
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document, header_of, rows_of
from momentseek.measuring.formats.registry import Reading, Runs, Writing, register

COLUMNS = ("query_id", "video", "start", "end", "score")


def claims(document: Document) -> bool:
    """Whether a file is a CSV with these columns."""
    return set(COLUMNS) <= set(header_of(document))


def read(document: Document, reading: Reading) -> Runs:
    """Rank is the order of a query's rows, wherever they stand."""
    found: dict[str, list[tuple[str, float, float, float]]] = {}
    for line, row in rows_of(document, *COLUMNS):
        try:
            start, end, score = (float(row[name]) for name in COLUMNS[2:])
        except ValueError:
            checked.wrong(document, f"line {line:,}", [row[name] for name in COLUMNS[2:]], "three numbers")
        found.setdefault(row["query_id"], []).append((row["video"], start, end, score))
    rows = [row for group in found.values() for row in group]
    videos, starts, ends, scores = zip(*rows, strict=True) if rows else ((), (), (), ())
    counts = map(len, found.values())
    run = Run.from_groups(
        list(found), counts, videos, starts, ends, scores, invalid=reading.invalid, source=str(document.path)
    )
    return (run,)


def write(runs: Runs, _: Writing) -> bytes:
    """One row per prediction."""
    run = writers.single(runs, "plain-csv")
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    times = zip(writers.row_videos(run), run.start.tolist(), run.end.tolist(), run.score.tolist(), strict=True)
    for query, group in zip(run.query_ids, writers.groups(run, list(times)), strict=True):
        table.writerows([query, *row] for row in group)
    return text.getvalue().encode()


register("plain-csv", claims, read, write, kind="run", title="predictions as plain CSV", suffix=".csv")
