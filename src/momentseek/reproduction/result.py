"""A finished table: for every row and column our mean and spread over seeds, beside the paper's figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from momentseek.evaluation.bootstrap import bootstrap_interval
from momentseek.evaluation.spread import SeedSpread, spread
from momentseek.moments.arrays import FloatArray
from momentseek.reproduction.paper_table import PaperTable


@dataclass(frozen=True)
class TableCell:
    """One figure: ours over seeds, its interval over queries, and the paper's (None: not printed)."""

    ours: SeedSpread
    low: float
    high: float
    seeds: tuple[float, ...]
    """Our figure with each seed."""
    paper: float | None


@dataclass(frozen=True)
class ResultRow:
    """One row of a finished table."""

    name: str
    label: str
    cells: tuple[TableCell, ...]
    best_steps: tuple[int, ...] = ()
    """The step with the best validation, seed by seed; empty for what was not trained."""
    steps: int = 0
    minutes: float = 0.0
    """Minutes that training took per seed, on the clock."""


@dataclass(frozen=True)
class TableResult:
    """A finished table, and what its caption must say."""

    table: PaperTable
    columns: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    data: str
    simulated: bool

    @property
    def caption(self) -> str:
        """What the figures are, and what of: real data or a simulation."""
        seeds = {len(row.cells[0].seeds) for row in self.rows if row.cells and row.best_steps}
        over = f"mean ± sd over {max(seeds)} seeds" if seeds and max(seeds) > 1 else "one seed"
        what = (
            f"Ours: SIMULATED DATA ({self.data}), {over}; these figures do not describe real videos and must not be "
            "compared with the paper's digits."
            if self.simulated
            else f"Ours: {self.data}, {over}."
        )
        return " ".join(
            part for part in (f"{self.table.title}.", f"Paper: {self.table.source}.", what, self.table.remarks) if part
        )

    def as_json(self) -> dict[str, Any]:
        """Every figure with its spread, interval and seeds."""
        return {
            "table": self.table.name,
            "caption": self.caption,
            "simulated": self.simulated,
            "data": self.data,
            "columns": list(self.columns),
            "rows": [
                {
                    "name": row.name,
                    "label": row.label,
                    "steps": row.steps or None,
                    "best_steps": list(row.best_steps),
                    "cells": [
                        {
                            "column": column,
                            "paper": cell.paper,
                            "mean": _number(cell.ours.mean),
                            "sd": _number(cell.ours.sd),
                            "interval": [_number(cell.low), _number(cell.high)],
                            "seeds": [_number(value) for value in cell.seeds],
                        }
                        for column, cell in zip(self.columns, row.cells, strict=True)
                    ],
                }
                for row in self.rows
            ],
        }


def table_cell(values: Sequence[FloatArray], paper: float | None, percent: bool) -> TableCell:
    """One figure from the queries' values of every seed.

    >>> cell = table_cell([np.array([1.0, 0.0]), np.array([1.0, 1.0])], 60.0, percent=True)
    >>> cell.ours.mean, cell.seeds, cell.paper
    (75.0, (50.0, 100.0), 60.0)
    """
    scale = 100.0 if percent else 1.0
    means = tuple(float(np.nanmean(each)) * scale if np.isfinite(each).any() else math.nan for each in values)
    queries = np.mean(np.stack(values), axis=0)[:, None]
    low, high = bootstrap_interval(queries)
    return TableCell(spread(means), float(low[0]) * scale, float(high[0]) * scale, means, paper)


def tie_cell(systems: Sequence[Sequence[FloatArray]], percent: bool) -> TableCell:
    """The share of queries on which all systems have exactly the same value, seed by seed (AxIoU, supplement B).

    >>> one, two = np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0])
    >>> round(tie_cell([[one], [two]], percent=True).ours.mean, 1)
    66.7
    """
    seeds = min(len(each) for each in systems)
    tied = [
        np.all(np.stack([each[seed] for each in systems]) == systems[0][seed], axis=0).astype(np.float64)
        for seed in range(seeds)
    ]
    return table_cell(tied, None, percent)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
