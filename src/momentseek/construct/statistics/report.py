"""The statistics and checks of some files, as a table with the splits side by side, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from momentseek.construct.statistics.checks import Check
from momentseek.construct.statistics.counts import LengthSummary, Statistics
from momentseek.tables import NO_VALUE, count, text_table

MAX_EXAMPLES = 3
Cell = Callable[[Statistics], float | int | None]


def as_text(columns: Sequence[Statistics], checks: Sequence[Check]) -> str:
    """The report as text: a column per split and the total, then what the checks found."""
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
    ]


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


def as_json(columns: Sequence[Statistics], checks: Sequence[Check]) -> dict[str, Any]:
    """The report as JSON: ``splits``, ``total`` (of one file, its own) and ``checks`` with every violation."""
    tables = [asdict(c) for c in columns]
    return {
        "splits": tables[:-1] or tables,
        "total": tables[-1],
        "checks": [
            {"check": c.check, "split": c.split, "count": c.count, "found": [asdict(f) for f in c.found]}
            for c in checks
        ],
    }
