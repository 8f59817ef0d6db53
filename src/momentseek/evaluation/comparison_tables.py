"""A comparison as people read it: text, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from momentseek.evaluation.bootstrap import CONFIDENCE_LEVEL
from momentseek.evaluation.comparison import Comparison, QueryDifference, RunPair
from momentseek.tables import (
    NO_VALUE,
    count,
    latex_table,
    latex_text,
    markdown_table,
    markdown_text,
    superscript,
    text_table,
    width,
)

MAX_MEASURE_COLUMNS = 6
"""Number of measures above which the measures become the rows of a table and the runs its columns."""
MAX_TEXT_COLUMNS = 100
"""Width of a text table, in characters, above which letters instead of the runs' names head the columns."""
TEST_WORDS = {"randomisation": "paired randomisation test", "t": "paired t-test", "tukey": "randomised Tukey HSD test"}
CORRECTION_WORDS = {"holm": "Holm-corrected", "none": "uncorrected", "tukey": "corrected by the test itself"}

STYLES: dict[str, tuple[Callable[..., str], Callable[[str], str]]] = {
    "text": (text_table, lambda words: " ".join(words.split())),
    "markdown": (markdown_table, markdown_text),
    "latex": (latex_table, latex_text),
}
"""How to lay out a table, and how to write words into it."""


@dataclass(frozen=True, slots=True)
class MeanCell:
    """A mean, the letters of the runs it is significantly better than, and whether no run's prints higher."""

    value: str
    letters: str
    best: bool


def text(comparison: Comparison) -> str:
    """What was done, the means, and every two runs, for a terminal."""

    def show(cells: Sequence[MeanCell]) -> list[str]:
        room = max(len(superscript(c.letters)) for c in cells)
        return [c.value + superscript(c.letters).ljust(room) for c in cells]

    header, rows = _grid(comparison, str, show)
    table = text_table(header, rows)
    if header[0] == "measure" and max(map(width, table.split("\n"))) > MAX_TEXT_COLUMNS:
        legend = "\n".join(header[1:])
        table = legend + "\n\n" + text_table(["measure", *(run[0] for run in header[1:])], rows)
    return "\n\n".join([summary(comparison), table, *notes(comparison), _pairs(comparison)])


def markdown(comparison: Comparison) -> str:
    """The means as a GitHub table, the best of each measure in bold, and every two runs."""

    def show(cells: Sequence[MeanCell]) -> list[str]:
        marks = [f"<sup>{c.letters}</sup>" if c.letters else "" for c in cells]
        return [(f"**{c.value}**" if c.best else c.value) + mark for c, mark in zip(cells, marks, strict=True)]

    header, rows = _grid(comparison, markdown_text, show)
    words = map(markdown_text, [summary(comparison), *notes(comparison)])
    return "\n\n".join([markdown_table(header, rows), *words, _pairs(comparison, "markdown")])


def latex(comparison: Comparison) -> str:
    """The means as a booktabs table, the best of each measure in bold, and a second table of every two runs."""

    def show(cells: Sequence[MeanCell]) -> list[str]:
        marks = [f"$^{{{c.letters}}}$" if c.letters else "" for c in cells]
        return [(rf"\textbf{{{c.value}}}" if c.best else c.value) + mark for c, mark in zip(cells, marks, strict=True)]

    header, rows = _grid(comparison, latex_text, show)
    words = ["% " + line for line in [summary(comparison), *notes(comparison)]]
    return "\n".join([*words, latex_table(header, rows), "", _pairs(comparison, "latex")])


def summary(comparison: Comparison) -> str:
    """One line: whose rules, how many queries, which test."""
    asked = count(comparison.queries, *comparison.asked)
    return (
        f"protocol {comparison.protocol}, {asked}, {TEST_WORDS[comparison.test]}, "
        f"{CORRECTION_WORDS[comparison.correction]}, alpha {comparison.alpha:g}"
    )


def notes(comparison: Comparison) -> list[str]:
    """How to read the letters, and which queries are not in the means."""
    if any(pair.significant for pair in comparison.pairs):
        lines = ["A raised letter: significantly better than the run of that letter."]
    else:
        lines = [f"No difference is significant at alpha {comparison.alpha:g}."]
    out = {n: c for n, c in zip(comparison.names, comparison.left_out, strict=True) if c}
    if out and len(set(out.values())) == 1 and len(out) == len(comparison.names):
        gone = next(iter(out.values()))
        words = f"{count(gone, *comparison.asked)} that {'does' if gone == 1 else 'do'}"
        lines.append(f"Left out for all runs: {words} not count for one of them.")
    elif out:
        which = ", ".join(f"{gone:,} ({comparison.title(name)})" for name, gone in out.items())
        lines.append(f"Left out for all runs, {comparison.asked[1]} that do not count for one of them: {which}.")
    return lines


def differences_table(
    rows: Sequence[QueryDifference], measure: str, runs: Sequence[str], percent: bool, style: str = "text"
) -> str:
    """The queries on which two runs differ most, with their words, as ``text``, ``markdown`` or ``latex``."""
    table, escape = STYLES[style]
    if not rows:
        return escape(f"{measure}: {runs[0]} and {runs[1]} do not differ on any query.")
    show = _format(percent)
    header = ["query", "a", "b", "difference", "text"]
    lines = [
        [escape(r.query_id), show(r.first), show(r.second), show(r.difference, "+"), escape(r.query or "")]
        for r in rows
    ]
    title = escape(f"{measure}: where {runs[0]} (a) and {runs[1]} (b) differ most")
    return f"{title}\n\n{table(header, lines, align='lrrrl')}"


def _grid(
    comparison: Comparison, label: Callable[[str], str], show: Callable[[Sequence[MeanCell]], list[str]]
) -> tuple[list[str], list[list[str]]]:
    """Header and rows; ``show`` gets the cells of one column, so that it can align what follows the figures."""
    format_ = _format(comparison.percent)
    runs = [f"{comparison.letter(run)} {label(run)}" for run in comparison.runs]
    names = [label(comparison.title(name)) for name in comparison.names]
    cells = [
        [
            MeanCell(format_(mean), comparison.beaten(name, run), format_(mean) == format_(best) != NO_VALUE)
            for name, mean, best in zip(comparison.names, row, comparison.means.max(axis=0).tolist(), strict=True)
        ]
        for run, row in zip(comparison.runs, comparison.means.tolist(), strict=True)
    ]
    if len(names) > MAX_MEASURE_COLUMNS:
        columns, header, side = cells, ["measure", *runs], names
    else:
        columns, header, side = [list(c) for c in zip(*cells, strict=True)], ["run", *names], runs
    return header, [list(row) for row in zip(side, *map(show, columns), strict=True)]


def _pairs(comparison: Comparison, style: str = "text") -> str:
    table, escape = STYLES[style]
    show = _format(comparison.percent)

    def row(pair: RunPair) -> list[str]:
        return [
            comparison.title(pair.measure),
            f"{comparison.letter(pair.first)} − {comparison.letter(pair.second)}",
            show(pair.difference, "+"),
            f"[{show(pair.low, '+')}, {show(pair.high, '+')}]",
            p_value(pair.p),
            NO_VALUE if math.isnan(pair.effect) else f"{_round_mean(pair.effect, 2):+.2f}".replace("inf", "∞"),
            f"{pair.wins:,}",
            f"{pair.ties:,}",
            f"{pair.losses:,}",
        ]

    interval = f"{CONFIDENCE_LEVEL * 100:g} % interval"
    header = ["measure", "runs", "difference", interval, "p", "effect", "wins", "ties", "losses"]
    rows = [[escape(cell) for cell in row(pair)] for pair in comparison.pairs]
    return table([escape(name) for name in header], rows, align="llr")


def p_value(p: float) -> str:
    """A p-value as text with four decimals.

    >>> p_value(0.03125), p_value(1e-9)
    ('0.0312', '<0.0001')
    """
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _format(percent: bool) -> Callable[..., str]:
    def show(value: float, sign: str = "") -> str:
        if math.isnan(value):
            return NO_VALUE
        scaled, digits = (value * 100, 2) if percent else (value, 4)
        return f"{_round_mean(scaled, digits):{sign}.{digits}f}"

    return show


def _round_mean(value: float, digits: int) -> float:
    return round(value, digits) + 0.0  # never −0
