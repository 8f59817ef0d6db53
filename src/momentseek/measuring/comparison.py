"""What a comparison of runs found: the means, and every two runs on every measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from string import ascii_lowercase
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.reports import (
    NO_VALUE,
    Tabular,
    count,
    html_table,
    latex_table,
    latex_text,
    markdown_table,
    markdown_text,
    superscript,
    text_table,
    width,
)
from momentseek.measuring.resampling import CONFIDENCE_LEVEL

LETTERS = ascii_lowercase
"""Letters that stand for the runs in tables, in the order given."""


@dataclass(frozen=True, slots=True)
class RunPair:
    """Two runs on one measure. ``difference`` is first − second, with its 95 % bootstrap interval from low to high.

    >>> pair = RunPair("R@1", "ours", "theirs", 0.1, 0.02, 0.2, 0.01, 0.01, 0.5, 7, 2, 1, True)
    >>> back = pair.swap()
    >>> back.first, back.difference, back.low, back.high, back.wins
    ('theirs', -0.1, -0.2, -0.02, 1)
    """

    measure: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    """Corrected for the number of pairs."""
    p_uncorrected: float
    effect: float
    """Cohen's d_z: mean over standard deviation of the differences; infinite if all are the same."""
    wins: int
    ties: int
    losses: int
    significant: bool

    def swap(self) -> RunPair:
        """The same pair with its two runs exchanged."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            low=-self.high,
            high=-self.low,
            effect=-self.effect,
            wins=self.losses,
            losses=self.wins,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Tabular):
    """The means of all runs, over the queries that count for all of them, and every pair of runs."""

    protocol: str
    test: str
    correction: str
    """``holm``, ``none``, or ``tukey``, whose p-values need no other."""
    alpha: float
    seed: int
    percent: bool
    runs: tuple[str, ...]
    names: tuple[str, ...]
    queries: int
    left_out: tuple[int, ...]
    """Per measure, how many queries do not count because they do not count for at least one run."""
    means: FloatArray
    """Mean of each measure for each run, an array of shape (runs, measures)."""
    pairs: tuple[RunPair, ...]
    """Each pair of runs once for every measure, ordered by measure and then by run, the earlier run first."""
    asked: tuple[str, str] = ("query", "queries")
    """What was asked, one and many: queries, or moments to be described."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Measure → how tables call it: with ``>`` where the protocol compares so, whatever the name says."""

    def __repr__(self) -> str:
        queries = count(self.queries, *self.asked)
        runs = f"{', '.join(self.runs[:-1])} and {self.runs[-1]}"
        return f"<Comparison of {runs}: {count(len(self.names), 'measure')}, {queries}, test {self.test}>"

    def _repr_html_(self) -> str:
        marks = [[superscript(self.beaten(name, run)) for run in self.runs] for name in self.names]
        rows = [
            [self.title(name), *(f"{mean:.4f}{mark}" for mean, mark in zip(means, raised, strict=True))]
            for name, means, raised in zip(self.names, self.means.T.tolist(), marks, strict=True)
        ]
        header = ["measure", *(f"{self.letter(run)}: {run}" for run in self.runs)]
        return html_table(header, rows, caption=f"Raised letters: significantly better than, p ≤ {self.alpha:g}")

    def to_columns(self) -> dict[str, Sequence[Any]]:
        """One row per measure and pair of runs: difference, interval, p-value, effect size, wins, ties and losses."""
        return {column.name: [getattr(pair, column.name) for pair in self.pairs] for column in fields(RunPair)}

    def title(self, measure: str) -> str:
        """A measure as tables call it."""
        return self.titles.get(measure, measure)

    def letter(self, run: str) -> str:
        """The letter that stands for a run in the tables."""
        return LETTERS[self.runs.index(run)]

    def pair(self, measure: str, first: str, second: str) -> RunPair:
        """How two runs compare on a measure, seen from the first."""
        try:
            return self._by_measure_and_runs[measure, first, second]
        except KeyError:
            raise MomentseekError(f"{first!r} and {second!r} were not compared on {measure!r}") from None

    def beaten(self, measure: str, run: str) -> str:
        """Letters of the runs that ``run`` is significantly better than."""
        against = [self.pair(measure, run, other) for other in self.runs if other != run]
        return "".join(self.letter(pair.second) for pair in against if pair.significant and pair.difference > 0)

    @cached_property
    def _by_measure_and_runs(self) -> dict[tuple[str, str, str], RunPair]:
        both = [pair for once in self.pairs for pair in (once, once.swap())]
        return {(pair.measure, pair.first, pair.second): pair for pair in both}

    def as_dict(self) -> dict[str, Any]:
        """Everything, unrounded, for JSON; an infinite effect size is the string ``Infinity`` or ``-Infinity``."""
        return {
            "protocol": self.protocol,
            "queries": self.queries,
            "test": self.test,
            "correction": self.correction,
            "alpha": self.alpha,
            "seed": self.seed,
            "interval": CONFIDENCE_LEVEL,
            "runs": [{"letter": self.letter(run), "run": run} for run in self.runs],
            "measures": [
                {
                    "measure": name,
                    "title": self.title(name),
                    "queries": self.queries - left_out,
                    "left_out": left_out,
                    "means": dict(zip(self.runs, map(_plain, means), strict=True)),
                    "better_than": {run: list(self.beaten(name, run)) for run in self.runs},
                    "pairs": [
                        {key: _plain(value) for key, value in asdict(pair).items() if key != "measure"}
                        for pair in self.pairs
                        if pair.measure == name
                    ],
                }
                for name, left_out, means in zip(self.names, self.left_out, self.means.T.tolist(), strict=True)
            ],
        }


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """One query on which two runs differ."""

    query_id: str
    query: str | None
    first: float
    second: float
    difference: float


def _plain(value: object) -> object:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


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
