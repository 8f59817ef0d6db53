"""The queue of queries that failed their checks: written for a person, read back when corrected.

JSON Lines: ``{"id": "90200", "original": "…", "attempt": "…", "query": "…", "reasons": ["…"]}``. The reviewer corrects
``query`` and gives the file back with ``--reviewed``. What a person wrote is accepted whatever the checks say; but rows
that still name somebody, are unchanged from the failed attempt, or belong to no query are counted and reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.formats.document import open_document
from momentseek.formats.values import records, strings


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A query that failed its checks and that a person should correct."""

    id: str
    original: str
    query: str
    """The best attempt at rewriting it."""
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReviewedQuery:
    """A query that a person has corrected."""

    original: str
    query: str
    untouched: bool = False
    """Whether it still is the attempt that failed; unknown (False) in a queue without ``attempt``."""


def write_queue(entries: Iterable[ReviewRequest]) -> bytes:
    """The bytes of a queue to be reviewed.

    >>> write_queue([ReviewRequest("7", "Ross sits.", "Ross sits.", ("names …",))]).decode()
    '{"id": "7", "original": "Ross sits.", "attempt": "Ross sits.", "query": "Ross sits.", "reasons": ["names …"]}\\n'
    """
    rows = (
        {"id": e.id, "original": e.original, "attempt": e.query, "query": e.query, "reasons": list(e.reasons)}
        for e in entries
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def read_queue(path: str | Path) -> dict[str, ReviewedQuery]:
    """Read a queue that a person has gone through: the corrected query of every id."""
    document = open_document(path)
    if not document.is_json:
        raise MomentseekError(f"{path}: expected the JSON Lines of a review queue")
    rows = records(document)
    ids, originals, queries = (strings(rows, key, document) for key in ("id", "original", "query"))
    reviewed: dict[str, ReviewedQuery] = {}
    for number, (row, key, original, query) in enumerate(zip(rows, ids, originals, queries, strict=True), 1):
        if key in reviewed:
            raise MomentseekError(f"{path}: record {number:,} repeats the id {key}; keep one of them")
        if not query.strip():
            raise MomentseekError(f"{path}: record {number:,} has an empty query; write one or remove the line")
        text = " ".join(query.split())
        attempt = row.get("attempt")
        reviewed[key] = ReviewedQuery(original, text, isinstance(attempt, str) and text == " ".join(attempt.split()))
    return reviewed
