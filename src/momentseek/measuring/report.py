"""Render an evaluation as tables for people, or as JSON and per-query lines for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from momentseek import __version__
from momentseek.core.reports import NO_VALUE, count, csv_text, text_table, to_plain
from momentseek.measuring.measures import PROTOCOLS
from momentseek.measuring.replicates import video_clusters
from momentseek.measuring.resampling import figure_intervals
from momentseek.measuring.result import Evaluation

Intervals = Mapping[str, tuple[float, float]]


def intervals(result: Evaluation, by: str | None = None, seed: int = 0) -> dict[str, Intervals]:
    """Return 95 % bootstrap intervals of every measure: for all queries under ``""``, and for each group's label."""
    rows = {"": np.ones(len(result.query_ids), dtype=bool)} | (result.members(by) if by else {})
    ends = {label: figure_intervals(result, some, seed=seed) for label, some in rows.items()}
    return {
        label: {name: (float(a), float(b)) for name, a, b in zip(result.names, low, high, strict=True)}
        for label, (low, high) in ends.items()
    }


def as_text(result: Evaluation, by: str | None = None, ci: Mapping[str, Intervals] | None = None) -> str:
    """Render a heading and the measures: as a grid if they form one, else one per line."""
    blocks = [_heading(result), _group_table(result, by, ci) if by else _plain(result, ci[""] if ci else None)]
    if ci:
        clusters = video_clusters(result.judgements)
        drawn = (
            "" if clusters is None else f", those of each of {count(int(clusters.max()) + 1, 'video')} drawn together"
        )
        blocks.append(f"Brackets: 95 % bootstrap interval over the {result.asked[1]}{drawn}.")
    return "\n\n".join(blocks)


def _heading(result: Evaluation) -> str:
    n = len(result.query_ids)
    facts = [count(n, *result.asked), f"{len(result.missing):,} missing"]
    counted = _counts(result)
    if counted and min(counted) < n:
        few, many = min(counted), max(counted)
        facts.insert(1, f"of which {few:,}{f' to {many:,}' if many > few else ''} count")
    facts += [f"{name} {100 * share:.1f} %" for name, share in result.judged.items()]
    ten = any(measure.NAME.startswith("CIDEr") for measure in result.measures)
    unit = "in percent" if result.percent else "from 0 to 1"
    unit += " (CIDEr: to 1,000)" if ten and result.percent else " (CIDEr: to 10)" if ten else ""
    about = PROTOCOLS[result.protocol].about
    return f"{result.run}: {', '.join(facts)}\nProtocol {result.protocol} ({about}); values {unit}."


def _plain(result: Evaluation, ci: Intervals | None) -> str:
    cells: dict[str, dict[str, str]] = {}
    for name, value in result.means.items():
        head, _, condition = result.titles[name].removesuffix("]").partition("[")
        cells.setdefault(head, {})[condition] = _figure(value, result.percent, ci[name] if ci else None)
    shapes: dict[tuple[str, ...], list[str]] = {}
    for head, row in cells.items():
        shapes.setdefault(tuple(row), []).append(head)
    blocks = []
    for conditions, heads in shapes.items():
        if len(conditions) == 1:
            titles = [f"{h}[{conditions[0]}]" if conditions[0] else h for h in heads]
            rows = [[t, cells[h][conditions[0]]] for t, h in zip(titles, heads, strict=True)]
            blocks.append(text_table(["measure", "value"], rows))
        elif len(heads) == 1 and len(conditions) > 4:
            rows = [[f"{heads[0]}[{c}]" if c else heads[0], cells[heads[0]][c]] for c in conditions]
            blocks.append(text_table(["measure", "value"], rows))
        else:
            header = ["measure", *(c or "all" for c in conditions)]
            blocks.append(text_table(header, [[h, *(cells[h][c] for c in conditions)] for h in heads]))
    return "\n\n".join(blocks)


def _group_table(result: Evaluation, by: str, ci: Mapping[str, Intervals] | None) -> str:
    groups = result.by(by)
    header = ["measure", "all", *(label or "(none)" for label in groups)]
    rows = [[result.asked[1], f"{len(result.query_ids):,}", *(f"{n:,}" for n, _ in groups.values())]]
    for name, value in result.means.items():
        cells = [("", value), *((label, means[name]) for label, (_, means) in groups.items())]
        rows.append(
            [result.titles[name], *(_figure(v, result.percent, ci[label][name] if ci else None) for label, v in cells)]
        )
    return text_table(header, rows)


def _figure(value: float, percent: bool, ci: tuple[float, float] | None = None) -> str:
    if math.isnan(value):
        return NO_VALUE
    text, *ends = (f"{100 * x:.2f}" if percent else f"{x:.4f}" for x in (value, *(ci or ())))
    return f"{text} [{', '.join(ends)}]" if ci else text


def as_json(result: Evaluation, by: str | None = None, ci: Mapping[str, Intervals] | None = None) -> dict[str, Any]:
    """Return unrounded values between 0 and 1, even if the protocol prints percentages; null where no query counts.

    Measures have the names they were requested by; ``titles`` shows the comparison that was made (``>`` or ``>=``).
    """
    report: dict[str, Any] = {
        "protocol": result.protocol,
        "queries": len(result.query_ids),
        "missing": len(result.missing),
        "measures": result.means,
        "titles": result.titles,
        "run": result.run,
        "truth": result.truth,
        "options": result.options,
        "counted": dict(zip(result.names, _counts(result), strict=True)),
        "judged": result.judged,
        "unjudged": {name: 1 - value for name, value in result.judged.items()},
        "missing_queries": result.missing,
        "notes": result.notes,
        "version": __version__,
    }
    if ci:
        report["intervals"] = ci[""]
    if by:
        report["by"] = {
            label: {"queries": n, "measures": means} | ({"intervals": ci[label]} if ci else {})
            for label, (n, means) in result.by(by).items()
        }
    plain: dict[str, Any] = to_plain(report)
    return plain


def _counts(result: Evaluation) -> list[int]:
    return [int((column == column).sum()) for column in result.values.T]


def per_query(result: Evaluation, suffix: str) -> bytes:
    """Return one line per query: CSV for ``.csv``, else JSON Lines."""
    texts = result.queries or ("",) * len(result.query_ids)
    rows = [
        ({"query_id": q, "query": t}, dict(zip(result.names, to_plain(values), strict=True)))
        for q, t, values in zip(result.query_ids, texts, result.values.tolist(), strict=True)
    ]
    if suffix == ".csv":
        return csv_text([{**query, **values} for query, values in rows], ["query_id", "query", *result.names]).encode()
    lines = ({**query, "measures": values} for query, values in rows)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
