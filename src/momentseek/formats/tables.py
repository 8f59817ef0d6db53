"""CSV files: the header without reading the rest, and rows that have the columns they need."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from momentseek.errors import MomentseekError
from momentseek.formats.document import Document

LONGEST_HEADER = 4096


def header_of(document: Document) -> list[str]:
    """The first line's columns; empty where the document is JSON or no text."""
    if document.is_json or b"\0" in document.data[:LONGEST_HEADER]:
        return []
    text = document.data[:LONGEST_HEADER].decode("utf-8-sig", errors="replace")
    try:
        return [name.strip() for name in next(csv.reader(io.StringIO(text, newline="")), [])]
    except csv.Error:
        return []


def rows_of(document: Document, *columns: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and ``columns`` of every row that is not blank."""
    reader = csv.reader(io.StringIO(document.text, newline=""))
    try:
        header = [name.strip() for name in next(reader, [])]
        for missing in (c for c in columns if c not in header):
            raise MomentseekError(f"{document.path}: the header has no column {missing!r}")
        for repeated in (c for c in columns if header.count(c) > 1):
            raise MomentseekError(f"{document.path}: the header has the column {repeated!r} twice; keep one of them")
        places = [header.index(c) for c in columns]
        for row in reader:
            if not row:
                continue
            if len(row) <= max(places):
                raise MomentseekError(f"{document.path}: line {reader.line_num:,} has only {len(row)} columns")
            yield reader.line_num, {c: row[p] for c, p in zip(columns, places, strict=True)}
    except csv.Error as e:
        raise MomentseekError(f"{document.path}: line {reader.line_num:,} is not CSV ({e})") from None
