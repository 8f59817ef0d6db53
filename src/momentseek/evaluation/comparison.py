"""What a comparison of runs found: the means, and every two runs on every measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from string import ascii_lowercase
from typing import Any

from momentseek.errors import MomentseekError
from momentseek.evaluation.bootstrap import CONFIDENCE_LEVEL
from momentseek.moments.arrays import FloatArray
from momentseek.tables import count, html_table, superscript
from momentseek.tabular import Tabular

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
