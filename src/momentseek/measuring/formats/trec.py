"""TREC's runs and judgements (qrels), with a moment as the document.

A document is ``VIDEO@START-END`` in seconds, such as ``film@12.5-20``, so that text retrieval tools can be used on
moments. In runs, a document without times is a whole video (task VR). As in trec_eval, a run is ranked by its scores,
documents with equal scores by their names in reverse order, and the column of ranks is ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import LONGEST_HEADER, Document
from momentseek.measuring.formats.registry import Reading, Runs, Writing, register

MOMENT = re.compile(r"(?P<video>.+)@(?P<start>\d+(?:\.\d+)?)-(?P<end>\d+(?:\.\d+)?)")
RUN_COLUMNS, QREL_COLUMNS = 6, 4


def _first_line(document: Document) -> list[str]:
    if document.is_json or b"\0" in document.data[:LONGEST_HEADER]:
        return []
    return document.data[:LONGEST_HEADER].decode("utf-8-sig", errors="replace").split("\n", 1)[0].split()


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def claims_run(document: Document) -> bool:
    """Whether a file has six columns: the second is Q0, the fourth a rank and the fifth a score."""
    first = _first_line(document)
    return len(first) == RUN_COLUMNS and first[1].upper() == "Q0" and _is_number(first[3]) and _is_number(first[4])


def claims_qrels(document: Document) -> bool:
    """Whether a file has four columns: the third is a moment and the last a level."""
    first = _first_line(document)
    return len(first) == QREL_COLUMNS and bool(MOMENT.fullmatch(first[2])) and first[3].lstrip("-").isdigit()


def read_run(document: Document, reading: Reading) -> Runs:
    """Read each query's documents by descending score; queries are in the order of the file."""
    rows = list(_rows(document, RUN_COLUMNS))
    scores = checked.numbers([_score(row, line, document) for line, row in rows], document, "score").tolist()
    groups: dict[str, list[tuple[float, str]]] = {}
    for (_, row), score in zip(rows, scores, strict=True):
        groups.setdefault(row[0], []).append((score, row[2]))
    ranked = [sorted(some, reverse=True) for some in groups.values()]
    moments = [MOMENT.fullmatch(name) for some in ranked for _, name in some]
    if any(moments) and not all(moments):
        name = next(name for (_, name), m in zip(checked.flatten(ranked), moments, strict=True) if m is None)
        checked.wrong(document, "a document", name, "VIDEO@START-END, as its others are")
    names = [name for some in ranked for _, name in some]
    run = Run.from_groups(
        list(groups),
        map(len, ranked),
        [m["video"] for m in moments if m] if any(moments) else names,
        [float(m["start"]) for m in moments if m] if any(moments) else np.zeros(len(names)),
        [float(m["end"]) for m in moments if m] if any(moments) else np.zeros(len(names)),
        [score for some in ranked for score, _ in some],
        task="VCMR" if any(moments) else "VR",
        invalid=reading.invalid,
        source=str(document.path),
    )
    return (run,)


def read_qrels(document: Document, reading: Reading) -> Judgements:
    """Read one row per judged moment; a level below 0 (not judged, or spam) counts as 0."""
    rows = list(_rows(document, QREL_COLUMNS))
    found = []
    for line, (query, _, name, level) in rows:
        moment = MOMENT.fullmatch(name)
        if moment is None or not level.lstrip("-").isdigit():
            checked.wrong(document, f"line {line:,}", f"{name} {level}", "VIDEO@START-END and a whole number")
        found.append((query, moment["video"], float(moment["start"]), float(moment["end"]), max(0, int(level))))
    order = {query: i for i, query in enumerate(dict.fromkeys(row[0] for row in found))}
    found.sort(key=lambda row: order[row[0]])
    counts = [len(list(some)) for _, some in groupby(found, key=lambda row: row[0])]
    return Judgements.from_groups(
        list(order),
        counts,
        [row[1] for row in found],
        [row[2] for row in found],
        [row[3] for row in found],
        [row[4] for row in found],
        durations=checked.with_corpus({}, reading),
        invalid=reading.invalid,
        source=str(document.path),
    )


def _rows(document: Document, columns: int) -> Iterator[tuple[int, list[str]]]:
    for line, text in enumerate(document.text.splitlines(), 1):
        if not text.strip():
            continue
        row = text.split()
        if len(row) != columns:
            checked.wrong(document, f"line {line:,}", text.strip(), f"{columns} columns")
        yield line, row


def _score(row: list[str], line: int, document: Document) -> float:
    try:
        return float(row[4])
    except ValueError:
        checked.wrong(document, f"line {line:,}", row[4], "a score")


def write_run(runs: Runs, _: Writing) -> bytes:
    """Write six columns; scores that do not fall with the rank raise an error, as other tools would reorder them."""
    if len(runs) != 1:
        raise MomentseekError(f"trec holds one list of predictions, but {runs[0].source} has {len(runs)}")
    run = runs[0]
    writers.finite_scores(run, "trec-run")
    names = _names(run) if run.task != "VR" else writers.row_videos(run)
    lines = []
    for query, some in zip(
        run.query_ids, writers.groups(run, list(zip(names, run.score.tolist(), strict=True))), strict=True
    ):
        if list(some) != sorted(some, key=lambda pair: (pair[1], pair[0]), reverse=True):
            raise MomentseekError(
                f"trec ranks by score, but the scores of query {query} in {run.source} do not fall with its ranks; "
                "sort the run by score, or write native"
            )
        lines += [f"{query} Q0 {name} {rank} {score!r} momentseek" for rank, (name, score) in enumerate(some, 1)]
    return _text(lines, [*run.query_ids, *names])


def write_qrels(truth: Judgements, _: Writing) -> bytes:
    """Write four columns; a query without a judged moment has no line."""
    names = _names(truth)
    queries = [truth.query_ids[q] for q in truth.row_query.tolist()]
    rows = zip(queries, names, truth.relevance.tolist(), strict=True)
    return _text([f"{query} 0 {name} {level}" for query, name, level in rows], [*queries, *names])


def _names(table: Any) -> list[str]:
    spans = zip(writers.row_videos(table), writers.spans(table), strict=True)
    return [f"{video}@{start!r}-{end!r}" for video, (start, end) in spans]


def _text(lines: list[str], names: list[str]) -> bytes:
    for name in names:
        if not name or any(c.isspace() for c in name):
            raise MomentseekError(
                f"trec separates columns by spaces, so it cannot hold the name {name!r}; write native"
            )
    return "".join(f"{line}\n" for line in lines).encode()


register("trec-qrels", claims_qrels, read_qrels, write_qrels)
register("trec-run", claims_run, read_run, write_run)
