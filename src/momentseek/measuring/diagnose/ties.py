"""All-tied queries: how often a measure cannot tell any of the systems apart (AxIoU supplement B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray
from momentseek.measuring.result import Evaluation

TIE_MEASURES = ("R@{1,5,10}[IoU>={0.3,0.5,0.7}]", "AxIoU@{1,5,10}")


@dataclass(frozen=True)
class TieShares:
    """Shares of all queries: those on which all runs score the same, and of these the ones at 0 and at 1."""

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
    """The share of queries on which every run has exactly the same value, per measure.

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
