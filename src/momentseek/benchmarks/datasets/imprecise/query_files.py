"""Read and write files of queries, queues of queries for a person to review, and the work file of a long rewriting.

Queries are TVR's JSON Lines, native ones, or plain lines; records keep all their other fields. The review queue is JSON
Lines: ``{"id": "90200", "original": "…", "attempt": "…", "query": "…", "reasons": ["…"]}``; the reviewer corrects
``query``. A person's correction is accepted whatever the checks say. The work file stores every finished batch before
the next one is requested, so that an interruption loses at most one batch; answers read from it are checked again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from momentseek.benchmarks.datasets.imprecise.names import show_of
from momentseek.core.atomic import append_lines
from momentseek.core.errors import MomentseekError, parameter
from momentseek.measuring.formats.checked import check_types, column, has_keys, records, strings
from momentseek.measuring.formats.document import Document, open_document

QueryFileKind = Literal["tvr", "native", "text"]


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """One distinct query: its id, its text, and its video's show (or "")."""

    id: str
    text: str
    show: str = ""


@dataclass(frozen=True)
class QueryFile:
    """The contents of a file of queries."""

    kind: QueryFileKind
    queries: tuple[NamedQuery, ...]
    rows: tuple[dict[str, Any], ...]
    """The selected records of the file; none for plain text."""
    everything: tuple[tuple[str, str], ...]
    """Query and show of every record, including those not selected: the texts from which names are learnt."""

    def with_queries(self, rewritten: Sequence[str]) -> bytes:
        """Return the bytes of the same records, each with its new query, and the old one as ``original``."""
        if self.kind == "text":
            return "".join(f"{q}\n" for q in rewritten).encode()
        by_id = {q.id: new for q, new in zip(self.queries, rewritten, strict=True)}
        key, name = ("desc_id", "desc") if self.kind == "tvr" else ("query_id", "query")
        lines = (
            json.dumps({**r, name: by_id[str(r[key])], "original": r[name]}, ensure_ascii=False) for r in self.rows
        )
        return "\n".join(lines).encode() if self.kind == "tvr" else "".join(f"{line}\n" for line in lines).encode()


def read_query_file(path: str | Path, type: str | None = None) -> QueryFile:
    """Recognise and read a file of queries; ``type`` selects TVR's descriptions of one type (v, t, vt)."""
    document = open_document(path)
    first = document.first_record
    if has_keys(first, "desc_id", "desc"):
        return _read_records(document, "tvr", "desc_id", "desc", "vid_name", type)
    if has_keys(first, "query_id", "query"):
        return _read_records(document, "native", "query_id", "query", "video", type)
    if document.is_json:
        raise MomentseekError(
            f"{path}: its records have no query; expected TVR's (desc_id, desc), ours (query_id, query) or plain text"
        )
    if type:
        raise MomentseekError(f"{path}: plain lines have no type; leave out {parameter('type')}")
    lines = [" ".join(line.split()) for line in document.text.splitlines()]
    queries = tuple(NamedQuery(str(i), line) for i, line in enumerate(lines, 1))
    return QueryFile("text", queries, (), tuple((line, "") for line in lines))


def _read_records(
    document: Document, kind: QueryFileKind, key: str, name: str, video: str, type: str | None
) -> QueryFile:
    rows = records(document)
    texts = strings(rows, name, document)
    ids = check_types(column(rows, key, document), {int, str}, document, key, "a whole number or text")
    shows = [show_of(v) if isinstance(v := row.get(video), str) else "" for row in rows]
    chosen = [i for i, row in enumerate(rows) if type is None or row.get("type") == type]
    if not chosen:
        there = sorted({str(row["type"]) for row in rows if "type" in row})
        found = f"there are {', '.join(there)}" if there else "its records have none"
        raise MomentseekError(f"{document.path}: no query has the type {type!r}; {found}")
    queries: dict[str, NamedQuery] = {}
    for i in chosen:
        query = NamedQuery(str(ids[i]), texts[i], shows[i])
        if queries.setdefault(query.id, query).text != query.text:
            raise MomentseekError(f"{document.path}: query {query.id} has two texts; keep one of them")
    everything = dict.fromkeys(zip(map(str, ids), texts, shows, strict=True))
    return QueryFile(
        kind,
        tuple(queries.values()),
        tuple(rows[i] for i in chosen),
        tuple((text, show) for _, text, show in everything),
    )


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A query that failed its checks and should be corrected by a person."""

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
    """Whether it is still the attempt that failed; False if the queue has no ``attempt``."""


def write_queue(entries: Iterable[ReviewRequest]) -> bytes:
    """Return the bytes of a queue to be reviewed.

    >>> write_queue([ReviewRequest("7", "Ross sits.", "Ross sits.", ("names …",))]).decode()
    '{"id": "7", "original": "Ross sits.", "attempt": "Ross sits.", "query": "Ross sits.", "reasons": ["names …"]}\\n'
    """
    rows = (
        {"id": e.id, "original": e.original, "attempt": e.query, "query": e.query, "reasons": list(e.reasons)}
        for e in entries
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def read_queue(path: str | Path) -> dict[str, ReviewedQuery]:
    """Read a queue that a person has reviewed: the corrected query of every id."""
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


class WorkFile:
    """Answers stored next to the output (``OUT.partial.jsonl``), each valid for one original and one model."""

    def __init__(self, path: str | Path, maker: str) -> None:
        self.path = Path(path)
        self.maker = maker

    def read(self) -> dict[str, str]:
        """Return the rewritten query of every original, from earlier runs with the same model."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as e:
            raise MomentseekError(f"{self.path}: cannot be read ({e.strerror}); remove it to start again") from None
        done: dict[str, str] = {}
        for line in data.splitlines():
            try:
                row = json.loads(line)
                original, query = row["original"], row["query"]
                query.encode()  # half a character could not be written
                if row["maker"] == self.maker and len(query.splitlines()) == 1:
                    done[original] = query
            except (ValueError, LookupError, TypeError, AttributeError):
                continue
        return done

    def keep(self, answers: Iterable[tuple[str, str]]) -> None:
        """Append a batch and wait until it is on disk."""
        rows = [{"maker": self.maker, "original": a, "query": b} for a, b in answers]
        if not rows:
            return
        append_lines(self.path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
