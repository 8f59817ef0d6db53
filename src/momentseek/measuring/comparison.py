"""The result of comparing runs: their means, and every pair of runs on every measure; and its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from string import ascii_lowercase
from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.reports import (
    NO_VALUE,
    STYLES,
    Cell,
    Table,
    Tabular,
    count,
    decimals,
    html_table,
    markdown_text,
    superscript,
    width,
)
from momentseek.measuring.resampling import CONFIDENCE_LEVEL

LETTERS = ascii_lowercase
"""Letters that stand for the runs in tables, in the order given."""
MAX_MEASURE_COLUMNS = 6
"""Number of measures above which the measures become the rows of a table and the runs its columns."""
MAX_TEXT_COLUMNS = 100
"""Width of a text table, in characters, above which letters instead of the runs' names head the columns."""
TEST_WORDS = {
    "randomisation": "paired randomisation test",
    "t": "paired t-test",
    "tukey": "randomised Tukey HSD test",
    "seeds": "t-test over queries and seeds",
}
CORRECTION_WORDS = {"holm": "Holm-corrected", "none": "uncorrected", "tukey": "corrected by the test itself"}


@dataclass(frozen=True, slots=True)
class RunPair:
    """Two runs on one measure; ``difference`` is first − second, ``low`` to ``high`` its 95 % interval.

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
    findable: float = math.nan
    """The smallest true difference that this test, uncorrected, detects with a probability of 80 %."""

    def swap(self) -> RunPair:
        """Return the same pair with its two runs exchanged."""
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
    """``holm``, ``none``, or ``tukey``, whose p-values are already corrected."""
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
    """Singular and plural of what was asked: queries, or moments to describe."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Measure → its name in tables, with ``>`` instead of ``>=`` if the protocol compares strictly."""
    videos: int | None = None
    """Number of videos, whose queries are exchanged and drawn together; None if no two queries share a video."""
    seeds: tuple[int, ...] = ()
    """Number of runs per system."""
    lower: tuple[str, ...] = ()
    """Measures for which a smaller figure is better."""

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
        """Return the name of a measure in tables."""
        return self.titles.get(measure, measure)

    def letter(self, run: str) -> str:
        """The letter that stands for a run in the tables."""
        return LETTERS[self.runs.index(run)]

    def pair(self, measure: str, first: str, second: str) -> RunPair:
        """Return the comparison of two runs on a measure; the difference is first − second."""
        try:
            return self._by_measure_and_runs[measure, first, second]
        except KeyError:
            raise MomentseekError(f"{first!r} and {second!r} were not compared on {measure!r}") from None

    def beaten(self, measure: str, run: str) -> str:
        """Letters of the runs that ``run`` is significantly better than."""
        against = [self.pair(measure, run, other) for other in self.runs if other != run]
        sign = -1 if measure in self.lower else 1
        return "".join(self.letter(pair.second) for pair in against if pair.significant and sign * pair.difference > 0)

    @cached_property
    def _by_measure_and_runs(self) -> dict[tuple[str, str, str], RunPair]:
        both = [pair for once in self.pairs for pair in (once, once.swap())]
        return {(pair.measure, pair.first, pair.second): pair for pair in both}

    def as_dict(self) -> dict[str, Any]:
        """Return everything, unrounded, for JSON; an infinite effect size becomes ``"Infinity"`` or ``"-Infinity"``."""
        return {
            "protocol": self.protocol,
            "queries": self.queries,
            "test": self.test,
            "correction": self.correction,
            "alpha": self.alpha,
            "seed": self.seed,
            "interval": CONFIDENCE_LEVEL,
            "videos": self.videos,
            "seeds": list(self.seeds),
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


def render(comparison: Comparison, style: str = "text", *, power: bool = False) -> str:
    """Render the means, how to read them, and every pair of runs, as ``text``, ``markdown`` or ``latex``.

    ``power`` adds the smallest difference that could be detected with these queries. Markdown and LaTeX show the best
    value of each measure in bold.
    """
    means, pairs = _means_table(comparison), _pairs_table(comparison, power).render(style)
    about = [summary(comparison), *notes(comparison)]
    if style == "markdown":
        return "\n\n".join([means.render(style), *map(markdown_text, about), pairs])
    if style == "latex":
        return "\n".join([*("% " + line for line in about), means.render(style), "", pairs])
    table = means.render(style)
    if means.header[0] == "measure" and max(map(width, table.split("\n"))) > MAX_TEXT_COLUMNS:
        letters = replace(means, header=["measure", *(run[0] for run in means.header[1:])])
        table = "\n".join(means.header[1:]) + "\n\n" + letters.render(style)
    return "\n\n".join([about[0], table, *about[1:], pairs])


def summary(comparison: Comparison) -> str:
    """Return one line with the protocol, the number of queries and the test."""
    asked = count(comparison.queries, *comparison.asked)
    if comparison.videos is not None:
        asked += f" in {count(comparison.videos, 'video')}, which are exchanged and drawn as a whole"
    if max(comparison.seeds, default=1) > 1:
        numbers = comparison.seeds[:1] if len(set(comparison.seeds)) == 1 else comparison.seeds
        asked += f", {', '.join(map(str, numbers))} seeds {'per system' if len(numbers) == 1 else 'in this order'}"
    test = TEST_WORDS[comparison.test]
    if comparison.test == "seeds" and comparison.videos is not None:
        test = test.replace("queries", "videos")
    return (
        f"protocol {comparison.protocol}, {asked}, {test}, "
        f"{CORRECTION_WORDS[comparison.correction]}, alpha {comparison.alpha:g}"
    )


def notes(comparison: Comparison) -> list[str]:
    """Return notes on how to read the letters, and on the queries left out of the means."""
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


def render_differences(
    rows: Sequence[QueryDifference], measure: str, runs: Sequence[str], percent: bool, style: str = "text"
) -> str:
    """Render the queries on which two runs differ most, with their texts, as ``text``, ``markdown`` or ``latex``."""
    escape = STYLES[style].escape
    if not rows:
        return escape(f"{measure}: {runs[0]} and {runs[1]} do not differ on any query.")
    table = Table(
        ["query", "a", "b", "difference", "text"],
        [
            [
                r.query_id,
                _figure(r.first, percent),
                _figure(r.second, percent),
                _figure(r.difference, percent, "+"),
                r.query or "",
            ]
            for r in rows
        ],
        align="lrrrl",
    )
    return f"{escape(f'{measure}: where {runs[0]} (a) and {runs[1]} (b) differ most')}\n\n{table.render(style)}"


def p_value(p: float) -> str:
    """Format a p-value with four decimals.

    >>> p_value(0.03125), p_value(1e-9)
    ('0.0312', '<0.0001')
    """
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _means_table(comparison: Comparison) -> Table:
    """Return a table with a row per run, or with a row per measure if there are many measures."""
    runs = [f"{comparison.letter(run)} {run}" for run in comparison.runs]
    names = [comparison.title(name) for name in comparison.names]
    columns = zip(comparison.names, comparison.means.T.tolist(), strict=True)
    best_of = [min(column) if name in comparison.lower else max(column) for name, column in columns]
    cells = [
        [
            _mean_cell(comparison, mean, best, comparison.beaten(name, run))
            for name, mean, best in zip(comparison.names, row, best_of, strict=True)
        ]
        for run, row in zip(comparison.runs, comparison.means.tolist(), strict=True)
    ]
    if len(names) > MAX_MEASURE_COLUMNS:
        return Table(
            ["measure", *runs], [[name, *row] for name, row in zip(names, zip(*cells, strict=True), strict=True)]
        )
    return Table(["run", *names], [[run, *row] for run, row in zip(runs, cells, strict=True)])


def _mean_cell(comparison: Comparison, mean: float, best: float, beaten: str) -> Cell:
    shown = _figure(mean, comparison.percent)
    return Cell(shown, shown == _figure(best, comparison.percent) != NO_VALUE, beaten)


def _pairs_table(comparison: Comparison, power: bool) -> Table:
    def show(value: float) -> str:
        return _figure(value, comparison.percent, "+")

    def row(pair: RunPair) -> list[str]:
        return [
            comparison.title(pair.measure),
            f"{comparison.letter(pair.first)} − {comparison.letter(pair.second)}",
            show(pair.difference),
            f"[{show(pair.low)}, {show(pair.high)}]",
            p_value(pair.p),
            decimals(_round(pair.effect, 2), 2, "+").replace("inf", "∞"),
            f"{pair.wins:,}",
            f"{pair.ties:,}",
            f"{pair.losses:,}",
            *([show(pair.findable).lstrip("+")] if power else []),
        ]

    interval = f"{CONFIDENCE_LEVEL * 100:g} % interval"
    header = ["measure", "runs", "difference", interval, "p", "effect", "wins", "ties", "losses"]
    header += ["smallest findable"] if power else []
    return Table(header, list(map(row, comparison.pairs)), align="llr")


def _figure(value: float, percent: bool, sign: str = "") -> str:
    scaled, digits = (value * 100, 2) if percent else (value, 4)
    return decimals(_round(scaled, digits), digits, sign)


def _round(value: float, digits: int) -> float:
    return round(value, digits) + 0.0  # never −0
