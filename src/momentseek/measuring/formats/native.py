"""Momentseek's own format: JSON Lines, one row per query and moment.

``{"query_id": "q1", "query": "a dog runs", "video": "a", "start": 0.0, "end": 5.0, "relevance": 4}``
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import EncodedNames, FloatArray, IntArray, encode_names, offsets_of
from momentseek.core.moments.judgements import Judgements, Saliency
from momentseek.core.moments.run import Run
from momentseek.core.moments.table import MomentTable
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.record_lists import NumberColumn, RecordLists, agreed_durations
from momentseek.measuring.formats.registry import Reading, Runs, register

Columns = dict[str, list[Any]]
REQUIRED = ("query_id", "video", "start", "end")
OPTIONAL = ("query", "relevance", "score", "duration", "agreement", "task", "pool", "saliency", "judge")
RESERVED = {*REQUIRED, *OPTIONAL}
"""Reserved columns; every other column is a label of queries, if it has one text per query."""


def truth_columns(truth: Judgements) -> Columns:
    """Return the columns of judgements, one row per moment."""
    rows = _Rows(truth)
    seconds = [None if d != d else d for d in truth.durations.tolist()]
    columns = rows.common()
    columns["relevance"] = rows.of(truth.relevance.tolist())
    columns["duration"] = rows.of([seconds[v] for v in truth.video.tolist()])
    for name in (n for n in truth.fields if n not in RESERVED):
        columns[name] = [truth.fields[name][q] for q in rows.owner]
    if "judge" in truth.columns:
        columns["judge"] = [judge or None for judge in rows.of(truth.columns["judge"])]
    if truth.agreement is not None:
        columns["agreement"] = [int(truth.agreement[q]) for q in rows.owner]
    if truth.pools is not None:
        names = [truth.videos[v] for v in truth.pools.video.tolist()]
        columns["pool"] = rows.once(truth.pools.offsets.tolist(), names)
    if truth.saliency is not None:
        columns["saliency"] = rows.once(truth.saliency.offsets.tolist(), truth.saliency.scores.tolist())
    return columns


def run_columns(runs: Runs, format: str) -> Columns:
    """Return the columns of runs in rank order, one task after the other; every row names its task."""
    tasks = [run.task for run in runs]
    if len(set(tasks)) < len(tasks):
        raise MomentseekError(f"{format} holds one run per task, but {runs[0].source} has {', '.join(tasks)}")
    parts: list[Columns] = []
    for run in runs:
        writers.finite_scores(run, format)
        rows = _Rows(run)
        part = rows.common()
        part["score"] = rows.of(run.score.tolist())
        part["task"] = [run.task if tasks != ["VCMR"] else None] * len(rows.owner)
        if run.saliency is not None:
            part["saliency"] = rows.once(run.saliency.offsets.tolist(), run.saliency.scores[:, 0].tolist())
        parts.append(part)
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: checked.flatten(p.get(name, [None] * len(p["query_id"])) for p in parts) for name in names}


class _Rows:
    """One row per moment, and one for each query that has none."""

    def __init__(self, table: MomentTable) -> None:
        self.table = table
        self.row: list[int | None] = []
        self.owner: list[int] = []
        bounds = table.offsets.tolist()
        for query, (first, last) in enumerate(itertools.pairwise(bounds)):
            self.row += range(first, last) if last > first else [None]
            self.owner += [query] * max(1, last - first)

    def of(self, values: Sequence[Any]) -> list[Any]:
        return [None if r is None else values[r] for r in self.row]

    def once(self, bounds: list[int], values: list[Any]) -> list[Any]:
        """Return per-query lists, each on the query's first row."""
        first = [True, *(a != b for a, b in zip(self.owner, self.owner[1:], strict=False))]
        return [values[bounds[q] : bounds[q + 1]] if new else None for q, new in zip(self.owner, first, strict=False)]

    def common(self) -> Columns:
        table = self.table
        columns: Columns = {"query_id": [table.query_ids[q] for q in self.owner]}
        if table.queries is not None:
            columns["query"] = [table.queries[q] for q in self.owner]
        columns["video"] = self.of([table.videos[v] for v in table.video.tolist()])
        columns["start"] = self.of(table.start.tolist())
        columns["end"] = self.of(table.end.tolist())
        return columns


def truth_from(columns: Columns, document: Document, reading: Reading) -> Judgements:
    """Build judgements from rows; a query's rows need not be adjacent."""
    moments = _Moments(columns, document)
    relevance = columns.get("relevance")
    pools = moments.per_query("pool", [], {list}, "a list") if "pool" in columns else None
    own = checked.durations_of(zip(moments.video, moments.of("duration"), strict=True), document)
    return Judgements.from_groups(
        moments.query_ids,
        moments.counts,
        moments.video,
        moments.start,
        moments.end,
        checked.levels(moments.of("relevance"), document, moments.places) if relevance is not None else None,
        durations=checked.with_corpus(own, reading),
        queries=moments.texts("query"),
        fields=moments.labels(),
        columns=moments.judges(),
        agreement=moments.per_query("agreement", 1, {int}, "a whole number") if "agreement" in columns else None,
        saliency=moments.saliency(),
        pools=None
        if pools is None
        else (map(len, pools), checked.check_types(checked.flatten(pools), {str}, document, "pool", "names")),
        invalid=reading.invalid,
        source=str(document.path),
    )


def runs_from(columns: Columns, document: Document, reading: Reading) -> Runs:
    """Build one run per task from rows, ranked in the order of the rows."""
    tasks = [t or "VCMR" for t in columns.get("task", [None] * len(columns["query_id"]))]
    checked.check_types(tasks, {str}, document, "task", "text")
    result = []
    for task in dict.fromkeys(tasks):
        part, chosen = columns, None
        if set(tasks) != {task}:
            chosen = [i for i, t in enumerate(tasks) if t == task]
            part = {name: [values[i] for i in chosen] for name, values in columns.items()}
        moments = _Moments(part, document, chosen)
        result.append(
            Run.from_groups(
                moments.query_ids,
                moments.counts,
                moments.video,
                moments.start,
                moments.end,
                checked.numbers(moments.of("score"), document, "score", moments.places) if "score" in part else None,
                queries=moments.texts("query"),
                saliency=moments.saliency(),
                task=task,
                invalid=reading.invalid,
                source=str(document.path),
            )
        )
    return tuple(result)


class _Moments:
    """Rows grouped by query, in order of first appearance, without the rows that only name a query."""

    def __init__(self, columns: Columns, document: Document, records: list[int] | None = None) -> None:
        self.columns, self.document = columns, document
        self.records = records or range(len(columns["query_id"]))
        """The number of each row's record in the file, from 0."""
        ids = checked.check_types(
            columns["query_id"], {int, str}, document, "query_id", "a whole number or text", self.records
        )
        self.query_ids, self.code = encode_names(list(map(str, ids)))
        self.order = np.argsort(self.code, kind="stable")
        video = columns["video"]
        self.rows = [r for r in self.order.tolist() if video[r] is not None]
        self.places = [self.records[r] for r in self.rows]
        self.counts = np.bincount(self.code[self.rows], minlength=len(self.query_ids)).tolist()
        self.video: list[str] = checked.check_types(self.of("video"), {str}, document, "video", "text", self.places)
        self.start = checked.numbers(self.of("start"), document, "start", self.places)
        self.end = checked.numbers(self.of("end"), document, "end", self.places)

    def of(self, name: str) -> list[Any]:
        values = self.columns.get(name)
        return [None] * len(self.rows) if values is None else [values[r] for r in self.rows]

    def per_query(self, name: str, default: Any, types: set[type], wanted: str) -> list[Any]:
        """Return the first value of each query, or ``default``."""
        values = self.columns[name]
        checked.check_types(values, {*types, type(None)}, self.document, name, wanted, self.records)
        found: list[Any] = [default] * len(self.query_ids)
        for query, value in zip(reversed(self.code.tolist()), reversed(values), strict=True):
            if value is not None:
                found[query] = value
        return found

    def texts(self, name: str) -> list[str] | None:
        return self.per_query(name, "", {str}, "text") if name in self.columns else None

    def labels(self) -> dict[str, list[str]]:
        """Return the unreserved columns that have one text per query; others describe moments."""
        found = {}
        for name in (n for n, values in self.columns.items() if n not in RESERVED and str in set(map(type, values))):
            values = self.columns[name]
            if set(map(type, values)) <= {str, type(None)}:
                label = self.per_query(name, "", {str}, "text")
                if all(v in (None, label[q]) for q, v in zip(self.code.tolist(), values, strict=True)):
                    found[name] = label
        return found

    def judges(self) -> dict[str, list[str]]:
        """Return the language model that judged each moment; empty if a person did."""
        names = self.of("judge")
        if not any(names):
            return {}
        checked.check_types(names, {str, type(None)}, self.document, "judge", "text", self.places)
        return {"judge": [name or "" for name in names]}

    def saliency(self) -> Saliency | None:
        if "saliency" not in self.columns:
            return None
        lists = self.per_query("saliency", [], {list}, "a list")
        rows = [row if isinstance(row, list) else [row] for row in checked.flatten(lists)]
        return Saliency(
            offsets_of(map(len, lists)), checked.matrix(rows, len(rows[0]) if rows else 1, self.document, "saliency")
        )


MOMENT_KEYS = ("query_id", "query", "video", "start", "end")


@dataclass(frozen=True)
class QuickRows:
    """The columns of a file that the fast reader understands, and the number of rows of each query."""

    query_ids: tuple[str, ...]
    counts: IntArray
    video: EncodedNames
    start: FloatArray
    end: FloatArray
    queries: list[str] | None
    others: dict[str, FloatArray]
    """All other columns, which hold numbers."""

    def groups(self) -> tuple[tuple[str, ...], list[int], EncodedNames, FloatArray, FloatArray]:
        """Return the arguments that all tables of moments are built from."""
        return self.query_ids, self.counts.tolist(), self.video, self.start, self.end


def read_quickly(document: Document) -> QuickRows | None:
    """Read a native file with the fast reader; None if it has rows that only the slow reader understands."""
    lists = document.record_lists
    if lists is None or lists.rest != [0]:
        return None
    video, start, end = lists.texts("video"), lists.numbers("start"), lists.numbers("end")
    found = _queries(lists)
    others = {name: lists.numbers(name) for name in lists.columns if name not in MOMENT_KEYS}
    known = {name: values for name, values in others.items() if values is not None}
    if found is None or video is None or start is None or end is None or len(known) < len(others):
        return None
    query_ids, begins = found
    texts = lists.texts("query")
    if texts is None and "query" in lists.columns:
        return None
    queries = None if texts is None else [texts[int(row)] for row in begins]
    counts = np.diff(np.append(begins, len(video)))
    return QuickRows(query_ids, counts, video, start, end, queries, known)


def _queries(lists: RecordLists) -> tuple[tuple[str, ...], IntArray] | None:
    """Return the queries and the first row of each; None if the rows of a query are not adjacent."""
    column = lists.columns.get("query_id")
    if isinstance(column, EncodedNames):
        codes = column.codes.astype(np.int64)
    elif isinstance(column, NumberColumn) and column.values.ndim == 1 and column.whole == column.values.size:
        codes = column.values.astype(np.int64)
    else:
        return None
    begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    if len(np.unique(codes[begins])) < len(begins):
        return None
    names = map(column.__getitem__, begins.tolist()) if isinstance(column, EncodedNames) else codes[begins].tolist()
    return tuple(map(str, names)), begins


NULLABLE = {*REQUIRED, "relevance", "score"}


def claims_run(document: Document) -> bool:
    """Whether a file has native rows without ``relevance``."""
    first = document.first_record
    return checked.has_keys(first, *REQUIRED) and "relevance" not in first


def read_truth(document: Document, reading: Reading) -> Judgements:
    """Read judgements; a query's rows need not be adjacent, and an unknown key with one text per query is a label."""
    quick = read_quickly(document)
    if quick is not None and {"relevance"} <= set(quick.others) <= {"relevance", "duration"}:
        durations: dict[str, float] | None = {}
        if "duration" in quick.others:
            durations = agreed_durations(quick.video, quick.others["duration"])
        if durations is not None:
            return Judgements.from_groups(
                *quick.groups(),
                quick.others["relevance"],
                durations=checked.with_corpus(durations, reading),
                queries=quick.queries,
                invalid=reading.invalid,
                source=str(document.path),
            )
    return truth_from(_columns(document, labels=True), document, reading)


def read_runs(document: Document, reading: Reading) -> Runs:
    """Read runs; a query's rows are ranked in their order in the file, whatever their scores."""
    if (quick := read_quickly(document)) is not None and set(quick.others) <= {"score"}:
        source, score = str(document.path), quick.others.get("score")
        groups = quick.groups()
        return (Run.from_groups(*groups, score, queries=quick.queries, invalid=reading.invalid, source=source),)
    return runs_from(_columns(document), document, reading)


def _columns(document: Document, *, labels: bool = False) -> Columns:
    rows = checked.records(document)
    columns = {name: checked.column(rows, name, document) for name in REQUIRED}
    present = set().union(*map(dict.keys, rows)) if rows else set()
    wanted = [name for name in OPTIONAL if name in present]
    wanted += sorted(present.difference(REQUIRED, OPTIONAL)) if labels else []
    return columns | {name: [r.get(name) for r in rows] for name in wanted}


def _lines(columns: Columns) -> bytes:
    names = tuple(columns)
    optional = [n not in NULLABLE for n in names]
    rows = zip(*columns.values(), strict=True)
    return b"".join(
        orjson.dumps(
            {n: v for n, v, skip in zip(names, row, optional, strict=True) if not (skip and v is None)},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for row in rows
    )


register("native", None, read_truth, lambda truth, _: _lines(truth_columns(truth)))
register("native-run", claims_run, read_runs, lambda runs, _: _lines(run_columns(runs, "native-run")))
