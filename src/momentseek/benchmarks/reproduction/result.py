"""A finished table: for every row and column our mean and spread over seeds, beside the paper's figure."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.benchmarks.reproduction.paper_table import PaperTable
from momentseek.core.figures import COLOURS, MARKERS, STYLE, subplots
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.reports import (
    NO_VALUE,
    html_table,
    latex_table,
    latex_text,
    markdown_table,
    markdown_text,
    text_table,
)
from momentseek.measuring.resampling import SeedSpread, bootstrap_interval, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


PAGE_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}"
)


def text_document(result: TableResult) -> str:
    """The caption, and the table in columns for a terminal."""
    header, rows = _cells(result)
    return f"{result.caption}\n\n{text_table(header, rows)}\n"


def markdown_document(result: TableResult) -> str:
    """The caption, and a GitHub table."""
    header, rows = _cells(result)
    table = markdown_table(_all(markdown_text, header), [_all(markdown_text, row) for row in rows])
    return f"{markdown_text(result.caption)}\n\n{table}\n"


def latex_document(result: TableResult) -> str:
    """A ``table`` environment in booktabs style, with its caption."""
    header, rows = _cells(result)
    table = latex_table(_all(_latex, header), [_all(_latex, row) for row in rows])
    return (
        "\\begin{table}\n\\centering\n\\small\n"
        f"{table}\n\\caption{{{_latex(result.caption)}}}\n\\label{{tab:{result.table.name}}}\n\\end{{table}}\n"
    )


def html_document(result: TableResult, pictures: Sequence[str] = ()) -> str:
    """A page with the table and, below it, its figures as SVG."""
    header, rows = _cells(result)
    drawn = "\n".join(f"<figure>{picture}</figure>" for picture in pictures)
    title = html.escape(result.table.title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{PAGE_STYLE}</style></head><body><h1>{title}</h1><p>{html.escape(result.caption)}</p>\n"
        f"{html_table(header, rows)}\n{drawn}\n"
        "</body></html>\n"
    )


def _cells(result: TableResult) -> tuple[list[str], list[list[str]]]:
    """The table's header and rows: each column twice, the paper's figure and ours, where the paper prints any."""
    printed = [any(row.cells[i].paper is not None for row in result.rows) for i in range(len(result.columns))]
    header = [""]
    for column, both in zip(result.columns, printed, strict=True):
        header += [f"{column}, paper", f"{column}, ours"] if both else [f"{column}, ours"]
    header += [f"{result.columns[0]}, 95 % over queries"]
    trained = any(row.best_steps for row in result.rows)
    header += ["best after, of steps"] if trained else []
    rows = []
    for row in result.rows:
        line = [row.label]
        for cell, both in zip(row.cells, printed, strict=True):
            line += [_paper(cell, result), _ours(cell, result)] if both else [_ours(cell, result)]
        line.append(_interval(row.cells[0], result))
        rows.append(line + ([_steps(row)] if trained else []))
    return header, rows


def _paper(cell: TableCell, result: TableResult) -> str:
    if cell.paper is None:
        return NO_VALUE
    return f"{cell.paper:.2f}" if result.table.percent else f"{cell.paper:.4f}"


def _ours(cell: TableCell, result: TableResult) -> str:
    if math.isnan(cell.ours.mean):
        return NO_VALUE
    digits = 1 if result.table.percent else 3
    sd = f" ± {cell.ours.sd:.{digits}f}" if cell.ours.count > 1 else ""
    return f"{cell.ours.mean:.{digits}f}{sd}"


def _interval(cell: TableCell, result: TableResult) -> str:
    if math.isnan(cell.low):
        return NO_VALUE
    digits = 1 if result.table.percent else 3
    return f"{cell.low:.{digits}f} to {cell.high:.{digits}f}"


def _steps(row: ResultRow) -> str:
    if not row.best_steps:
        return NO_VALUE
    return f"{', '.join(f'{step:,}' for step in row.best_steps)} of {row.steps:,}"


def _latex(text: str) -> str:
    return latex_text(text).replace("±", r"$\pm$").replace("†", r"$\dagger$").replace(NO_VALUE, "--")


def _all(change: Callable[[str], str], cells: Sequence[str]) -> list[str]:
    return [change(cell) for cell in cells]


MOST_PANELS = 4
"""Columns that are drawn; a table with more has its first ones drawn."""
MANY_COLUMNS = 9
"""With so many columns, and none of them printed in the paper, a row is drawn as a curve over them."""


def svg_pictures(result: TableResult) -> list[str]:
    """The table's figure as SVG text, the same for the same table."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = table_figure(result)
        data = io.BytesIO()
        figure.savefig(data, format="svg", metadata={"Date": None})
    text = data.getvalue().decode()
    return [text[text.index("<svg") :]]


def table_figure(result: TableResult) -> Figure:
    """Curves where the columns are many and nothing is printed beside them, else a panel per column."""
    printed = any(cell.paper is not None for row in result.rows for cell in row.cells)
    return _panels(result) if printed or len(result.columns) < MANY_COLUMNS else _curves(result)


def _panels(result: TableResult) -> Figure:
    """For each of the first columns a panel: a line per row with our mean ± sd and the paper's figure."""
    columns = result.columns[:MOST_PANELS]
    rows = len(result.rows)
    figure, axes = subplots(1, len(columns), 2.2 + 2.4 * len(columns), 1.2 + 0.3 * rows)
    for i, (ax, column) in enumerate(zip(axes[0], columns, strict=True)):
        for y, row in enumerate(result.rows):
            cell = row.cells[i]
            sd = 0.0 if math.isnan(cell.ours.sd) else cell.ours.sd
            if not math.isnan(cell.ours.mean):
                ax.errorbar(cell.ours.mean, y, xerr=sd or None, fmt=MARKERS[0], color=COLOURS[0], ms=5, capsize=2)
            if cell.paper is not None:
                ax.plot(cell.paper, y, MARKERS[2], color=COLOURS[1], ms=5)
        ax.set_yticks(range(rows), [row.label for row in result.rows] if i == 0 else [""] * rows)
        ax.set_ylim(rows - 0.5, -0.5)
        ax.set_title(column, fontsize=9, loc="left")
        ax.grid(axis="x", alpha=0.3)
    _legend(figure, result, paper=any(cell.paper is not None for row in result.rows for cell in row.cells))
    return figure


def _curves(result: TableResult) -> Figure:
    """A curve per row over all columns, such as thresholds (Fig. 12 of debiased grounding)."""
    figure, axes = subplots(1, 1, 1.5 + 0.45 * len(result.columns), 4.8)
    ax = axes[0][0]
    places = range(len(result.columns))
    for i, row in enumerate(result.rows):
        look = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[(i // len(COLOURS)) % len(MARKERS)]}
        ax.plot(places, [cell.ours.mean for cell in row.cells], label=row.label, ms=3, lw=1.2, **look)
    ax.set_xticks(list(places), result.columns, rotation=60, ha="right", fontsize=7)
    ax.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=7)
    _note(figure, result)
    return figure


def _legend(figure: Figure, result: TableResult, paper: bool) -> None:
    from matplotlib.lines import Line2D

    ours = "ours, simulated" if result.simulated else "ours"
    shown = [(COLOURS[0], MARKERS[0], ours), *([(COLOURS[1], MARKERS[2], "paper")] if paper else [])]
    handles = [Line2D([], [], color=c, marker=m, ls="", label=name) for c, m, name in shown]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    _note(figure, result)


def _note(figure: Figure, result: TableResult) -> None:
    if result.simulated:
        figure.suptitle("SIMULATED DATA: our figures do not describe real videos", fontsize=8, color="0.4")
