"""All-tied queries: how often a measure cannot distinguish any of the systems (AxIoU supplement B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray
from momentseek.core.reports import count, percentage, text_table
from momentseek.measuring.result import Evaluation

TIE_MEASURES = ("R@{1,5,10}[IoU>={0.3,0.5,0.7}]", "AxIoU@{1,5,10}")


@dataclass(frozen=True)
class TieShares:
    """Share of queries on which all runs score the same, and shares on which all score 0 and all score 1."""

    measure: str
    ratio: float
    at_zero: float
    at_one: float


@dataclass(frozen=True)
class TieReport:
    """The all-tied query ratio of every measure, for the given runs."""

    truth: str
    runs: tuple[str, ...]
    queries: int
    measures: tuple[TieShares, ...]


def count_ties(evaluations: Sequence[Evaluation]) -> TieReport:
    """Return the share of queries on which all runs have exactly the same value, per measure.

    Queries that do not count for one of the runs (NaN) are left out.

    >>> from momentseek import Judgements, Run, evaluate
    >>> truth = Judgements.from_rows([("q1", "v", 0, 10, 1), ("q2", "v", 0, 10, 1)])
    >>> one = Run.from_rows([("q1", "v", 0, 8, 1), ("q2", "v", 0, 2, 1)])
    >>> two = Run.from_rows([("q1", "v", 0, 9, 1), ("q2", "v", 0, 2, 1)])
    >>> report = count_ties([evaluate(r, truth, ["R@1[IoU>=0.5]", "AxIoU@1"]) for r in (one, two)])
    >>> [(m.measure, m.ratio) for m in report.measures]
    [('R@1[IoU>=0.5]', 1.0), ('AxIoU@1', 0.5)]
    """
    if len(evaluations) < 2:
        raise MomentseekError("ties need at least two runs to compare")
    first = evaluations[0]
    values = np.stack([e.values for e in evaluations])
    counted: BoolArray = np.all(~np.isnan(values), axis=0)
    tied: BoolArray = np.all(values == values[0], axis=0)
    found = []
    for i, name in enumerate(first.names):
        same = tied[counted[:, i], i]
        at = values[0, counted[:, i], i]
        found.append(TieShares(name, _share(same), _share(same & (at == 0)), _share(same & (at == 1))))
    return TieReport(first.truth, tuple(e.run for e in evaluations), int(counted.any(axis=1).sum()), tuple(found))


def _share(rows: BoolArray) -> float:
    return float(rows.mean()) if len(rows) else float("nan")


def tie_text(report: TieReport) -> str:
    """Render the all-tied query ratios, and which measures learn least and most."""
    rows = [[t.measure, percentage(t.ratio), percentage(t.at_zero), percentage(t.at_one)] for t in report.measures]
    return "\n\n".join(
        [
            f"TIES: on how many queries do {all_runs(report)} score exactly the same?",
            f"{Path(report.truth).name}: {count(report.queries, 'query', 'queries')}; runs {', '.join(report.runs)}.",
            text_table(["measure", "all tied", "all at 0", "all at 1"], rows),
            f"On such queries the measure says nothing about which run is better. {_learning(report)}",
        ]
    )


def all_runs(report: TieReport) -> str:
    """Describe all runs together: "both runs", "all 3 runs"."""
    return "both runs" if len(report.runs) == 2 else f"all {len(report.runs)} runs"


def _learning(report: TieReport) -> str:
    worst, best = (pick(report.measures, key=lambda t: t.ratio) for pick in (max, min))
    share = percentage(1 - worst.ratio)
    if len(report.measures) == 1 or share == percentage(1 - best.ratio):
        who = worst.measure if len(report.measures) == 1 else "Every measure"
        return f"{who} learns from\n{share} of the queries."
    return f"{worst.measure} learns from\n{share} of the queries, {best.measure} from {percentage(1 - best.ratio)}."
