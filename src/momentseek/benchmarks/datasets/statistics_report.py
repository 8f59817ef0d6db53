"""The report of ``momentseek data statistics``: labels given by hand, the table as text and JSON, and figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.benchmarks.datasets.common import BuiltDataset, as_json_lines
from momentseek.benchmarks.datasets.statistics import (
    MIN_QUERY_WORDS,
    AnnotationSplit,
    Check,
    LengthSummary,
    Statistics,
    as_decisions,
    compute_statistics,
    read_subtitles,
    run_checks,
)
from momentseek.benchmarks.datasets.statistics_figures import draw_statistics
from momentseek.core.errors import MomentseekError, parameter
from momentseek.core.moments.captions import described_moments
from momentseek.core.moments.judgements import Corpus, Judgements
from momentseek.core.reports import NO_VALUE, count, text_table
from momentseek.measuring.formats import read_captions, read_corpus, read_truth
from momentseek.measuring.formats.checked import has_keys
from momentseek.measuring.formats.document import header_of, open_document, rows_of


def read_query_labels(path: str | os.PathLike[str]) -> dict[str, dict[str, int]]:
    """Read people's labels of queries from a CSV with ``query_id`` and columns of whole numbers, such as ``actions``.

    An empty cell means that the query does not have that label.
    """
    document = open_document(path)
    names = [name for name in header_of(document) if name != "query_id"]
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    for line, row in rows_of(document, "query_id", *names):
        for name in names:
            value = row[name].strip()
            if not value:
                continue
            if not value.isdecimal():
                raise MomentseekError(f"{path}: line {line:,} has {name} {value!r}; give a whole number, 0 or more")
            if found[name].setdefault(row["query_id"].strip(), int(value)) != int(value):
                raise MomentseekError(f"{path}: line {line:,} labels {row['query_id']} with two values; keep one row")
    if not any(found.values()):
        raise MomentseekError(f"{path}: has no labels; give CSV with query_id and a column for each label")
    return found


def read_described(path: str | os.PathLike[str], corpus: Corpus | None) -> Judgements:
    """Read ground truth in any format, or TVC's captions, each of which then counts as a query."""
    try:
        return read_truth(Path(path), corpus=corpus, invalid="keep")
    except MomentseekError:
        document = open_document(path)
        if document.is_json and has_keys(document.first_record, "clip_id"):
            return described_moments(read_captions(Path(path), corpus=corpus, invalid="keep"))
        raise


MAX_EXAMPLES = 3
Cell = Callable[[Statistics], float | int | None]


def statistics_text(columns: Sequence[Statistics], checks: Sequence[Check]) -> str:
    """Render the report as text: a column per split and the total, then the results of the checks."""
    rows = [[label, *(_cell(value(c)) for c in columns)] for label, value in _rows(columns)]
    rows = [row for row in rows if any(cell != NO_VALUE for cell in row[1:])]
    parts = [text_table(["", *(c.name for c in columns)], rows)]
    found = [c for c in checks if c.count]
    names = list(dict.fromkeys(c.check for c in checks))
    clean = [name for name in names if not any(c.check == name for c in found)]
    lines = []
    for c in found:
        some = "; ".join(f.words() for f in c.found[:MAX_EXAMPLES]) + ("; …" if c.count > MAX_EXAMPLES else "")
        lines.append(f"  {c.split}: {count(c.count, c.one, c.many)} ({some})")
    parts.append("Found:\n" + "\n".join(lines) if lines else "Nothing found.")
    if clean:
        parts[-1] += f"\n  nowhere: {', '.join(clean)}"
    return "\n\n".join(parts)


def _rows(columns: Sequence[Statistics]) -> list[tuple[str, Cell]]:
    types = dict.fromkeys(kind for c in columns for kind in c.types)
    levels = sorted({level for c in columns for level in c.levels})
    return [
        ("queries", lambda c: c.queries),
        *((f"  of type {t}", lambda c, t=t: c.types.get(t, (0, 0))[0]) for t in types),
        *((f"  videos of type {t}", lambda c, t=t: c.types.get(t, (0, 0))[1]) for t in types),
        ("videos", lambda c: c.videos),
        ("query–moment pairs", lambda c: c.pairs),
        *(((f"  of relevance {v}", lambda c, v=v: c.levels.get(v, 0)) for v in levels) if levels != ["1"] else ()),
        ("different moments", lambda c: c.moments),
        ("queries per different moment", lambda c: c.queries / c.moments if c.queries > 1.1 * c.moments > 0 else None),
        ("relevant moments per query", lambda c: c.relevant_per_query),
        *_spread("words per query", lambda c: c.words),
        ("words and punctuation per query", lambda c: c.tokens_per_query),
        ("vocabulary", lambda c: c.vocabulary or None),
        ("different verbs (rule)", lambda c: c.verbs if c.vocabulary else None),
        ("verbs per query (rule)", lambda c: c.verbs_per_query),
        *_spread("moment duration (s)", lambda c: c.moment_seconds),
        ("moments together (h)", lambda c: c.moment_seconds.total / 3600),
        *_spread("video duration (s)", lambda c: c.video_seconds),
        ("videos together (h)", lambda c: c.video_seconds.total / 3600 or None),
        ("moment / video duration, mean", lambda c: c.ratio),
        *_label_rows(columns),
    ]


def _label_rows(columns: Sequence[Statistics]) -> list[tuple[str, Cell]]:
    """Return, for each label, the number of labelled queries and the percentage with each value or more."""
    rows: list[tuple[str, Cell]] = []
    for name in dict.fromkeys(name for c in columns for name in c.labels):
        values = sorted({value for c in columns for value in c.labels.get(name, {})})
        rows.append((f"queries labelled: {name}", partial(_labelled_queries, name)))
        rows += [(f"  {name} >= {value} (%)", partial(_share_from, name, value)) for value in values[1:]]
    return rows


def _labelled_queries(name: str, column: Statistics) -> int | None:
    return sum(column.labels.get(name, {}).values()) or None


def _share_from(name: str, least: int, column: Statistics) -> float | None:
    counts = column.labels.get(name, {})
    total = sum(counts.values())
    return 100 * sum(n for value, n in counts.items() if value >= least) / total if total else None


def _spread(label: str, of: Callable[[Statistics], LengthSummary]) -> list[tuple[str, Cell]]:
    return [
        (f"{label}, least", lambda c: of(c).least),
        (f"{label}, mean", lambda c: of(c).mean),
        (f"{label}, most", lambda c: of(c).most),
    ]


def _cell(value: float | int | None) -> str:
    if value is None:
        return NO_VALUE
    return f"{value:,.2f}" if isinstance(value, float) and value != int(value) else f"{int(value):,}"


def statistics_json(columns: Sequence[Statistics], checks: Sequence[Check]) -> dict[str, Any]:
    """Return the report as JSON: ``splits``, ``total`` (that of the only file) and ``checks`` with every violation."""
    tables = [asdict(c) for c in columns]
    return {
        "splits": tables[:-1] or tables,
        "total": tables[-1],
        "checks": [
            {"check": c.check, "split": c.split, "count": c.count, "found": [asdict(f) for f in c.found]}
            for c in checks
        ],
    }


def build_statistics(
    files: Mapping[str, str],
    *,
    videos: str | None = None,
    subtitles: str | None = None,
    min_words: int = MIN_QUERY_WORDS,
    labels: str | None = None,
    report: str | None = None,
    plots: str | None = None,
) -> BuiltDataset:
    """Compute statistics of truth files (name → path), the splits of one dataset, and check them."""
    corpus = read_corpus(videos) if videos else None
    splits = [AnnotationSplit(n, read_described(path, corpus)) for n, path in files.items()]
    said = read_subtitles(subtitles) if subtitles else None
    marks = read_query_labels(labels) if labels else {}
    columns = [compute_statistics([split], split.name, marks) for split in splits]
    if len(splits) > 1:
        columns.append(compute_statistics(splits, "total", marks))
    found = run_checks(splits, min_words=min_words, subtitles=said)
    notes = []
    for split in splits:
        if unknown := int(np.isnan(split.truth.durations).sum()):
            which = count(unknown, "video has", "videos have")
            notes.append(f"{split.name}: {which} no duration ({parameter('videos', ...)}); ends there go unchecked")
    if said is not None and (silent := len({v for split in splits for v in split.truth.videos} - set(said))):
        notes.append(f"{count(silent, 'video has', 'videos have')} no subtitles in {subtitles}")
    asked = {query for split in splits for query in split.truth.query_ids}
    if strange := len({query for given in marks.values() for query in given} - asked):
        notes.append(f"{count(strange, 'label is', 'labels are')} of queries that no file has ({labels})")
    written: dict[str | os.PathLike[str], bytes] = {report: as_json_lines(as_decisions(found))} if report else {}
    if plots:
        drawn = draw_statistics(splits, {c.name: c.labels for c in columns[: len(splits)]})
        written |= {Path(plots) / name: data for name, data in drawn.items()}
    return BuiltDataset(
        files=written,
        summary=statistics_json(columns, found),
        text=statistics_text(columns, found),
        notes=notes,
    )
