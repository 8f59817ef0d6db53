"""A comparison as people and programs read it: text, Markdown, LaTeX, and a JSON-able object."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from momentseek.evaluation.compare import LEVEL, QueryDifference
from momentseek.evaluation.comparison import Comparison, Pair
from momentseek.evaluation.tables import latex_table, latex_text, markdown_table, markdown_text, superscript, text_table

WIDE = 6
"""With more measures than this, the measures are the rows and the runs the columns."""
TESTS = {"randomisation": "paired randomisation test", "t": "paired t-test", "tukey": "randomised Tukey HSD test"}
CORRECTIONS = {"holm": "Holm-corrected", "none": "uncorrected", "tukey": "corrected by the test itself"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean, the letters of the runs it is significantly better than, and whether no run's prints higher."""

    value: str
    letters: str
    best: bool


def text(comparison: Comparison) -> str:
    """What was done, the means, and every two runs, for a terminal."""

    def show(cells: Sequence[Cell]) -> list[str]:
        room = max(len(superscript(c.letters)) for c in cells)
        return [c.value + superscript(c.letters).ljust(room) for c in cells]

    header, rows = _grid(comparison, str, show)
    parts = [summary(comparison), text_table(header, rows), *notes(comparison), _pairs(comparison)]
    return "\n\n".join(parts)


def markdown(comparison: Comparison) -> str:
    """The means as a GitHub table, the best of each measure in bold."""

    def show(cells: Sequence[Cell]) -> list[str]:
        marks = [f"<sup>{c.letters}</sup>" if c.letters else "" for c in cells]
        return [(f"**{c.value}**" if c.best else c.value) + mark for c, mark in zip(cells, marks, strict=True)]

    header, rows = _grid(comparison, markdown_text, show)
    return "\n\n".join([markdown_table(header, rows), *map(markdown_text, [summary(comparison), *notes(comparison)])])


def latex(comparison: Comparison) -> str:
    """The means as a booktabs table, the best of each measure in bold."""

    def show(cells: Sequence[Cell]) -> list[str]:
        marks = [f"$^{{{c.letters}}}$" if c.letters else "" for c in cells]
        return [(rf"\textbf{{{c.value}}}" if c.best else c.value) + mark for c, mark in zip(cells, marks, strict=True)]

    header, rows = _grid(comparison, latex_text, show)
    return "\n".join(["% " + line for line in [summary(comparison), *notes(comparison)]] + [latex_table(header, rows)])


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """Everything, unrounded; an infinite effect size is the string ``Infinity`` or ``-Infinity``."""
    return {
        "protocol": comparison.protocol,
        "queries": comparison.queries,
        "test": comparison.test,
        "correction": comparison.correction,
        "alpha": comparison.alpha,
        "seed": comparison.seed,
        "interval": LEVEL,
        "runs": [{"letter": comparison.letter(run), "run": run} for run in comparison.runs],
        "measures": [
            {
                "measure": name,
                "queries": comparison.queries - left_out,
                "left_out": left_out,
                "means": {run: _finite(m) for run, m in zip(comparison.runs, comparison.means[:, i], strict=True)},
                "better_than": {run: list(comparison.beaten(name, run)) for run in comparison.runs},
                "pairs": [
                    {key: _finite(value) for key, value in asdict(pair).items() if key != "measure"}
                    for pair in comparison.pairs
                    if pair.measure == name
                ],
            }
            for i, (name, left_out) in enumerate(zip(comparison.names, comparison.left_out, strict=True))
        ],
    }


def summary(comparison: Comparison) -> str:
    """One line: whose rules, how many queries, which test."""
    return (
        f"protocol {comparison.protocol}, {comparison.queries:,} queries, {TESTS[comparison.test]}, "
        f"{CORRECTIONS[comparison.correction]}, alpha {comparison.alpha:g}"
    )


def notes(comparison: Comparison) -> list[str]:
    """How to read the letters, and which queries are not in the means."""
    lines = ["A raised letter: significantly better than the run of that letter."]
    out = {n: c for n, c in zip(comparison.names, comparison.left_out, strict=True) if c}
    if out and len(set(out.values())) == 1 and len(out) == len(comparison.names):
        lines.append(f"Left out for all runs: {next(iter(out.values())):,} queries that do not count for one of them.")
    elif out:
        which = ", ".join(f"{count:,} ({name})" for name, count in out.items())
        lines.append(f"Left out for all runs, queries that do not count for one of them: {which}.")
    return lines


def differences_table(rows: Sequence[QueryDifference], measure: str, runs: Sequence[str], percent: bool) -> str:
    """The queries on which two runs differ most, with their words."""
    if not rows:
        return f"{measure}: {runs[0]} and {runs[1]} do not differ on any query"
    show = _format(percent)
    lines = [
        [r.query_id, show(r.first), show(r.second), show(r.difference, "+"), " ".join((r.query or "").split())]
        for r in rows
    ]
    table = text_table(["query", "a", "b", "a − b", "text" if any(r.query for r in rows) else ""], lines, align="lrrrl")
    return f"{measure}: largest differences of {runs[0]} (a) and {runs[1]} (b)\n\n{table}"


def _grid(
    comparison: Comparison, label: Callable[[str], str], show: Callable[[Sequence[Cell]], list[str]]
) -> tuple[list[str], list[list[str]]]:
    """Header and rows; ``show`` gets the cells of one column, so that it can align what follows the figures."""
    format_ = _format(comparison.percent)
    runs = [f"{comparison.letter(run)} {label(run)}" for run in comparison.runs]
    names = [label(name) for name in comparison.names]
    cells = [
        [
            Cell(format_(mean), comparison.beaten(name, run), format_(mean) == format_(best))
            for name, mean, best in zip(comparison.names, row, comparison.means.max(axis=0), strict=True)
        ]
        for run, row in zip(comparison.runs, comparison.means.tolist(), strict=True)
    ]
    if len(names) > WIDE:
        columns, header, side = cells, ["measure", *runs], names
    else:
        columns, header, side = [list(c) for c in zip(*cells, strict=True)], ["run", *names], runs
    return header, [list(row) for row in zip(side, *map(show, columns), strict=True)]


def _pairs(comparison: Comparison) -> str:
    show = _format(comparison.percent)

    def row(pair: Pair) -> list[str]:
        return [
            pair.measure,
            f"{comparison.letter(pair.first)} − {comparison.letter(pair.second)}",
            show(pair.difference, "+"),
            f"[{show(pair.low, '+')}, {show(pair.high, '+')}]",
            p_value(pair.p),
            f"{pair.effect:+.2f}".replace("inf", "∞"),
            f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}",
        ]

    interval = f"{LEVEL * 100:g} % interval"
    header = ["measure", "runs", "difference", interval, "p", "effect", "wins / ties / losses"]
    rows = [row(pair) for pair in comparison.pairs]
    return text_table(header, rows, align="llr")


def p_value(p: float) -> str:
    """Four decimals.

    >>> p_value(0.03125), p_value(1e-9)
    ('0.0312', '<0.0001')
    """
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _format(percent: bool) -> Callable[..., str]:
    def show(value: float, sign: str = "") -> str:
        if math.isnan(value):
            return "–"
        return f"{value * 100:{sign}.2f}" if percent else f"{value:{sign}.4f}"

    return show


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return float(value) if isinstance(value, np.floating) else value
