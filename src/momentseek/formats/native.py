"""Our own files: JSON Lines, one row per query and moment.

``{"query_id": "q1", "query": "a dog runs", "video": "a", "start": 0.0, "end": 5.0, "relevance": 4}``
"""

from __future__ import annotations

import orjson

from momentseek.formats.document import Document
from momentseek.formats.native_columns import (
    OPTIONAL,
    REQUIRED,
    Columns,
    run_columns,
    runs_from,
    truth_columns,
    truth_from,
)
from momentseek.formats.native_quick import read_quickly
from momentseek.formats.record_lists import agreed_durations
from momentseek.formats.registry import FileFormat, Reading, Runs, Writing, register
from momentseek.formats.values import column, first_record, has_keys, records, with_corpus
from momentseek.moments import Judgements, Run

NULL_SAYS_SOMETHING = {*REQUIRED, "relevance", "score"}


def claims_truth(document: Document) -> bool:
    """Whether a file has rows of our own form with ``relevance``."""
    return has_keys(first_record(document), *REQUIRED, "relevance")


def claims_run(document: Document) -> bool:
    """Whether a file has rows of our own form without ``relevance``."""
    first = first_record(document)
    return has_keys(first, *REQUIRED) and "relevance" not in first


def read_truth(document: Document, reading: Reading) -> Judgements:
    """A query's rows need not stand together; a key we do not know is a label if it is one text per query."""
    quick = read_quickly(document)
    if quick is not None and {"relevance"} <= set(quick.others) <= {"relevance", "duration"}:
        durations: dict[str, float] | None = {}
        if "duration" in quick.others:
            durations = agreed_durations(quick.video, quick.others["duration"])
        if durations is not None:
            return Judgements.from_groups(
                *quick.groups(),
                quick.others["relevance"],
                durations=with_corpus(durations, reading),
                queries=quick.queries,
                invalid=reading.invalid,
                source=str(document.path),
            )
    return truth_from(_columns(document, labels=True), document, reading)


def read_runs(document: Document, reading: Reading) -> Runs:
    """A query's rows are ranked as they stand; the score does not reorder them."""
    if (quick := read_quickly(document)) is not None and set(quick.others) <= {"score"}:
        source, score = str(document.path), quick.others.get("score")
        groups = quick.groups()
        return (Run.from_groups(*groups, score, queries=quick.queries, invalid=reading.invalid, source=source),)
    return runs_from(_columns(document), document, reading)


def _columns(document: Document, *, labels: bool = False) -> Columns:
    rows = records(document)
    columns = {name: column(rows, name, document) for name in REQUIRED}
    present = set().union(*map(dict.keys, rows)) if rows else set()
    wanted = [name for name in OPTIONAL if name in present]
    wanted += sorted(present.difference(REQUIRED, OPTIONAL)) if labels else []
    return columns | {name: [r.get(name) for r in rows] for name in wanted}


def write_truth(truth: Judgements, _: Writing) -> bytes:
    """Write judgements with everything that measures need."""
    return _lines(truth_columns(truth))


def write_runs(runs: Runs, _: Writing) -> bytes:
    """Write one run, or one for each task."""
    return _lines(run_columns(runs, "native-run"))


def _lines(columns: Columns) -> bytes:
    names = tuple(columns)
    optional = [n not in NULL_SAYS_SOMETHING for n in names]
    rows = zip(*columns.values(), strict=True)
    return b"".join(
        orjson.dumps(
            {n: v for n, v, skip in zip(names, row, optional, strict=True) if not (skip and v is None)},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        for row in rows
    )


register(
    FileFormat(
        "native",
        "truth",
        "momentseek's own truth",
        claims_truth,
        read_truth=read_truth,
        write_truth=write_truth,
        suffix=".jsonl",
        notes="Carries everything measures use; any query id.",
    )
)
register(
    FileFormat(
        "native-run",
        "run",
        "momentseek's own predictions",
        claims_run,
        read_runs=read_runs,
        write_runs=write_runs,
        suffix=".jsonl",
        notes="Rank is the rows' order within the query.",
    )
)
