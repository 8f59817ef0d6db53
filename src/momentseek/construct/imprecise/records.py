"""Files of queries: TVR's JSON Lines, our own, or plain lines; records keep all their other fields."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from momentseek.construct.imprecise.evidence import show_of
from momentseek.errors import MomentseekError
from momentseek.formats.document import Document, open_document
from momentseek.formats.values import check_types, column, first_record, has_keys, records, strings

QueryFileKind = Literal["tvr", "native", "text"]


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """One distinct query: its id, its text, and the show from which its video comes (or "")."""

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
        """The bytes of the same records, each with its new query and the old one under ``original``."""
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
    first = first_record(document)
    if has_keys(first, "desc_id", "desc"):
        return _read_records(document, "tvr", "desc_id", "desc", "vid_name", type)
    if has_keys(first, "query_id", "query"):
        return _read_records(document, "native", "query_id", "query", "video", type)
    if document.is_json:
        raise MomentseekError(
            f"{path}: its records have no query; expected TVR's (desc_id, desc), ours (query_id, query) or plain text"
        )
    if type:
        raise MomentseekError(f"{path}: plain lines have no type; leave out `type`")
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
            raise MomentseekError(f"{document.path}: query {query.id} stands with two texts; keep one of them")
    everything = dict.fromkeys(zip(map(str, ids), texts, shows, strict=True))
    return QueryFile(
        kind,
        tuple(queries.values()),
        tuple(rows[i] for i in chosen),
        tuple((text, show) for _, text, show in everything),
    )
