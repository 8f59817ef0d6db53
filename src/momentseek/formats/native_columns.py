"""Our own format's columns, to and from tables; JSON Lines and Parquet are two ways to store them.

Every row has ``query_id, video, start, end`` and ``relevance`` (truth) or ``score`` (run). The rest is optional
and left out where it says nothing: ``query, duration, agreement, task``, on a query's first row ``pool`` and
``saliency``, and of a truth any text that labels the query, such as ``type``. A query without moments is one row
whose video, start and end are null.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.formats.document import Document
from momentseek.formats.registry import Reading, Runs
from momentseek.formats.values import check_types, durations_of, flatten, levels, matrix, numbers, with_corpus
from momentseek.formats.writing import finite_scores
from momentseek.moments import Judgements, Run, Saliency
from momentseek.moments.arrays import encode_names, offsets_of
from momentseek.moments.table import MomentTable

Columns = dict[str, list[Any]]
REQUIRED = ("query_id", "video", "start", "end")
OPTIONAL = ("query", "relevance", "score", "duration", "agreement", "task", "pool", "saliency")
RESERVED = {*REQUIRED, *OPTIONAL}
"""Every other column is a label of queries, if it is one text per query."""


def truth_columns(truth: Judgements) -> Columns:
    """The columns of judgements, one row per moment."""
    rows = _Rows(truth)
    seconds = [None if d != d else d for d in truth.durations.tolist()]
    columns = rows.common()
    columns["relevance"] = rows.of(truth.relevance.tolist())
    columns["duration"] = rows.of([seconds[v] for v in truth.video.tolist()])
    for name in (n for n in truth.fields if n not in RESERVED):
        columns[name] = [truth.fields[name][q] for q in rows.owner]
    if truth.agreement is not None:
        columns["agreement"] = [int(truth.agreement[q]) for q in rows.owner]
    if truth.pools is not None:
        names = [truth.videos[v] for v in truth.pools.video.tolist()]
        columns["pool"] = rows.once(truth.pools.offsets.tolist(), names)
    if truth.saliency is not None:
        columns["saliency"] = rows.once(truth.saliency.offsets.tolist(), truth.saliency.scores.tolist())
    return columns


def run_columns(runs: Runs, format: str) -> Columns:
    """Runs as rows, in rank order; several tasks follow each other, and every row names its own."""
    tasks = [run.task for run in runs]
    if len(set(tasks)) < len(tasks):
        raise MomentseekError(f"{format} holds one run per task, but {runs[0].source} has {', '.join(tasks)}")
    parts: list[Columns] = []
    for run in runs:
        finite_scores(run, format)
        rows = _Rows(run)
        part = rows.common()
        part["score"] = rows.of(run.score.tolist())
        part["task"] = [run.task if tasks != ["VCMR"] else None] * len(rows.owner)
        if run.saliency is not None:
            part["saliency"] = rows.once(run.saliency.offsets.tolist(), run.saliency.scores[:, 0].tolist())
        parts.append(part)
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: flatten(p.get(name, [None] * len(p["query_id"])) for p in parts) for name in names}


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
        """Per-query lists, each on the query's first row."""
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
    """Rows as judgements; a query's rows need not stand together."""
    moments = _Moments(columns, document)
    relevance = columns.get("relevance")
    pools = moments.per_query("pool", [], {list}, "a list") if "pool" in columns else None
    own = durations_of(zip(moments.video, moments.of("duration"), strict=True), document)
    return Judgements.from_groups(
        moments.query_ids,
        moments.counts,
        moments.video,
        moments.start,
        moments.end,
        levels(moments.of("relevance"), document, moments.places) if relevance is not None else None,
        durations=with_corpus(own, reading),
        queries=moments.texts("query"),
        fields=moments.labels(),
        agreement=moments.per_query("agreement", 1, {int}, "a whole number") if "agreement" in columns else None,
        saliency=moments.saliency(),
        pools=None
        if pools is None
        else (map(len, pools), check_types(flatten(pools), {str}, document, "pool", "names")),
        invalid=reading.invalid,
        source=str(document.path),
    )


def runs_from(columns: Columns, document: Document, reading: Reading) -> Runs:
    """Rows as one run per task; rank is the rows' order."""
    tasks = [t or "VCMR" for t in columns.get("task", [None] * len(columns["query_id"]))]
    check_types(tasks, {str}, document, "task", "text")
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
                numbers(moments.of("score"), document, "score", moments.places) if "score" in part else None,
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
        """The record of the file, from 0, that each row is."""
        ids = check_types(columns["query_id"], {int, str}, document, "query_id", "a whole number or text", self.records)
        self.query_ids, self.code = encode_names(list(map(str, ids)))
        self.order = np.argsort(self.code, kind="stable")
        video = columns["video"]
        self.rows = [r for r in self.order.tolist() if video[r] is not None]
        self.places = [self.records[r] for r in self.rows]
        self.counts = np.bincount(self.code[self.rows], minlength=len(self.query_ids)).tolist()
        self.video: list[str] = check_types(self.of("video"), {str}, document, "video", "text", self.places)
        self.start = numbers(self.of("start"), document, "start", self.places)
        self.end = numbers(self.of("end"), document, "end", self.places)

    def of(self, name: str) -> list[Any]:
        values = self.columns.get(name)
        return [None] * len(self.rows) if values is None else [values[r] for r in self.rows]

    def per_query(self, name: str, default: Any, types: set[type], wanted: str) -> list[Any]:
        """The first value each query has, or ``default``."""
        values = self.columns[name]
        check_types(values, {*types, type(None)}, self.document, name, wanted, self.records)
        found: list[Any] = [default] * len(self.query_ids)
        for query, value in zip(reversed(self.code.tolist()), reversed(values), strict=True):
            if value is not None:
                found[query] = value
        return found

    def texts(self, name: str) -> list[str] | None:
        return self.per_query(name, "", {str}, "text") if name in self.columns else None

    def labels(self) -> dict[str, list[str]]:
        """The columns we do not know that say one text per query; any others say something of moments."""
        found = {}
        for name in (n for n, values in self.columns.items() if n not in RESERVED and str in set(map(type, values))):
            values = self.columns[name]
            if set(map(type, values)) <= {str, type(None)}:
                label = self.per_query(name, "", {str}, "text")
                if all(v in (None, label[q]) for q, v in zip(self.code.tolist(), values, strict=True)):
                    found[name] = label
        return found

    def saliency(self) -> Saliency | None:
        if "saliency" not in self.columns:
            return None
        lists = self.per_query("saliency", [], {list}, "a list")
        rows = [row if isinstance(row, list) else [row] for row in flatten(lists)]
        return Saliency(
            offsets_of(map(len, lists)), matrix(rows, len(rows[0]) if rows else 1, self.document, "saliency")
        )
