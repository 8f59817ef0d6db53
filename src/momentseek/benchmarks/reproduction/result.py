"""A finished table, with our mean and deviation over seeds next to the paper's figures, and its renderings."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.benchmarks.reproduction.paper_table import PaperTable
from momentseek.core.atomic import write_all
from momentseek.core.figures import (
    COLOURS,
    MARKERS,
    figure_bytes,
    label_rows,
    legend_below,
    marker_legend,
    point_with_error,
    subplots,
)
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.reports import NO_VALUE, STYLES, Cell, Table, decimals, to_plain
from momentseek.measuring.measures import PROTOCOLS
from momentseek.measuring.measures.captions.measure import CaptionMeasure
from momentseek.measuring.replicates import replicated_test, shared_letters
from momentseek.measuring.resampling import SeedSpread, bootstrap_interval, bootstrap_means, percentiles, spread
from momentseek.measuring.significance import holm

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class TableCell:
    """One figure: ours over seeds, its interval over videos, and the paper's (None: not printed)."""

    ours: SeedSpread
    low: float
    high: float
    seeds: tuple[float, ...]
    """Our figure with each seed."""
    paper: float | None
    letters: str = ""
    """Letters shared with the rows of the column that do not differ significantly from this one."""


@dataclass(frozen=True)
class ResultRow:
    """One row of a finished table."""

    name: str
    label: str
    cells: tuple[TableCell, ...]
    best_steps: tuple[int, ...] = ()
    """The step with the best validation, seed by seed; empty if nothing was trained."""
    steps: int = 0
    search_seconds: float | None = None
    """Search time for all queries of the first column's split, in seconds, mean over seeds; None if unknown."""
    paper_seconds: float | None = None


@dataclass(frozen=True)
class TableResult:
    """A finished table, and what its caption must say."""

    table: PaperTable
    columns: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    data: str
    simulated: bool
    differences: str = ""
    """Settings that are not the paper's, with the paper's in brackets."""

    @property
    def caption(self) -> str:
        """What the figures are, and whether they are from real data or a simulation."""
        baselines = {row.name for row in self.table.rows.values() if row.baseline}
        counts = [{len(r.cells[0].seeds) for r in self.rows if (r.name in baselines) is yes} for yes in (True, False)]
        blind, trained = (" to ".join(map(str, sorted({min(c), max(c)}))) if c else "" for c in counts)
        over = "one seed" if (trained or blind) == "1" else f"mean ± sd over {trained or blind} seeds"
        over += f" (blind rows: {blind})" if trained and blind not in ("", trained) else ""
        what = (
            f"Ours: SIMULATED DATA ({self.data}), {over}; these figures do not describe real videos and must not be "
            "compared with the paper's digits."
            if self.simulated
            else f"Ours: {self.data}, {over}."
        )
        letters = any(cell.letters for row in self.rows for cell in row.cells)
        parts = (
            f"{self.table.title}.",
            f"Paper: {self.table.source}." if self.table.source else "",
            what,
            f"Measured by the protocol {self.table.protocol} ({PROTOCOLS[self.table.protocol].about}).",
            self.table.remarks,
            f"Differs from the paper: {self.differences}." if self.differences else "",
            "Rows that share a letter do not differ significantly (p > 0.05, Holm-corrected, by video and seed)."
            if letters
            else "",
        )
        return " ".join(part for part in parts if part)

    def as_json(self) -> dict[str, Any]:
        """Return every figure with its spread, interval and seeds."""
        rows = [
            {
                "name": row.name,
                "label": row.label,
                "steps": row.steps or None,
                "best_steps": row.best_steps,
                **({n: getattr(row, n) for n in ("search_seconds", "paper_seconds") if self.table.run_time}),
                "cells": [
                    {
                        "column": column,
                        "paper": cell.paper,
                        "mean": cell.ours.mean,
                        "sd": cell.ours.sd,
                        "interval": [cell.low, cell.high],
                        "seeds": cell.seeds,
                        "letters": cell.letters,
                    }
                    for column, cell in zip(self.columns, row.cells, strict=True)
                ],
            }
            for row in self.rows
        ]
        found: dict[str, Any] = to_plain(
            {
                "table": self.table.name,
                "caption": self.caption,
                "simulated": self.simulated,
                "protocol": self.table.protocol,
                "differences": self.differences,
                "data": self.data,
                "columns": self.columns,
                "rows": rows,
            }
        )
        return found


def caption_cell(
    parts: Sequence[FloatArray], measure: CaptionMeasure, paper: float | None, percent: bool, clusters: IntArray | None
) -> TableCell:
    """Compute a figure that is not a mean, such as BLEU, from each seed's statistics of captions (moments, columns)."""
    scale = 100.0 if percent else 1.0
    figures = tuple(float(measure.figures(some.sum(axis=0, keepdims=True))[0]) * scale for some in parts)
    drawn = bootstrap_means(np.column_stack(list(parts)), clusters=clusters) * len(parts[0])
    seeds = np.stack([measure.figures(sums) for sums in np.split(drawn, len(parts), axis=1)])
    low, high = percentiles(seeds.mean(axis=0)[:, None], 1 - ALPHA)
    return TableCell(spread(figures), float(low[0]) * scale, float(high[0]) * scale, figures, paper)


def table_cell(
    values: Sequence[FloatArray], paper: float | None, percent: bool, clusters: IntArray | None = None
) -> TableCell:
    """Compute a figure from the queries' values of every seed; its interval is drawn by clusters, such as videos.

    >>> cell = table_cell([np.array([1.0, 0.0]), np.array([1.0, 1.0])], 60.0, percent=True)
    >>> cell.ours.mean, cell.seeds, cell.paper
    (75.0, (50.0, 100.0), 60.0)
    """
    scale = 100.0 if percent else 1.0
    means = tuple(float(np.nanmean(each)) * scale if np.isfinite(each).any() else math.nan for each in values)
    queries = np.mean(np.stack(values), axis=0)[:, None]
    low, high = bootstrap_interval(queries, clusters=clusters)
    return TableCell(spread(means), float(low[0]) * scale, float(high[0]) * scale, means, paper)


def row_letters(systems: Sequence[Sequence[FloatArray]], clusters: IntArray | None) -> list[str]:
    """Return the letters that each system shares with those it does not differ from significantly.

    >>> apart = np.tile([0.0, 1.0], 20)
    >>> row_letters([[apart], [apart], [apart / 9]], None)
    ['a', 'a', 'b']
    """
    seeds = [np.stack(values) for values in systems]
    first, second = np.triu_indices(len(seeds), k=1)
    raw = [replicated_test(seeds[a], seeds[b], clusters).p for a, b in zip(first, second, strict=True)]
    apart = np.zeros((len(seeds), len(seeds)), dtype=bool)
    apart[first, second] = apart[second, first] = holm(np.array(raw)) <= ALPHA
    means = [float(np.nanmean(each)) if np.isfinite(each).any() else math.nan for each in seeds]
    return shared_letters(means, apart)


ALPHA = 0.05
"""Two rows differ significantly if their corrected p-value is at most this."""


def tie_cell(systems: Sequence[Sequence[FloatArray]], percent: bool, clusters: IntArray | None = None) -> TableCell:
    """Return the share of queries on which all systems have exactly the same value, by seed (AxIoU, supplement B).

    >>> one, two = np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0])
    >>> round(tie_cell([[one], [two]], percent=True).ours.mean, 1)
    66.7
    """
    seeds = min(len(each) for each in systems)
    tied = [
        np.all(np.stack([each[seed] for each in systems]) == systems[0][seed], axis=0).astype(np.float64)
        for seed in range(seeds)
    ]
    return table_cell(tied, None, percent, clusters)


PAGE_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}"
)


def document(result: TableResult, style: str, pictures: Sequence[str] = ()) -> str:
    """Render caption and table as ``text``, ``markdown``, ``latex`` or an ``html`` page with pictures (SVG)."""
    table, caption = as_table(result).render(style), STYLES[style].escape(result.caption)
    if style == "latex":
        return (
            "\\begin{table}\n\\centering\n\\small\n"
            f"{table}\n\\caption{{{caption}}}\n\\label{{tab:{result.table.name}}}\n\\end{{table}}\n"
        )
    if style != "html":
        return f"{caption}\n\n{table}\n"
    drawn = "\n".join(f"<figure>{picture}</figure>" for picture in pictures)
    title = html.escape(result.table.title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{PAGE_STYLE}</style></head><body><h1>{title}</h1><p>{html.escape(result.caption)}</p>\n"
        f"{table}\n{drawn}\n</body></html>\n"
    )


def write_documents(result: TableResult, out: Path) -> None:
    """Write a finished table as Markdown, LaTeX, HTML and JSON; without matplotlib the page has no figure."""
    drawn = [] if find_spec("matplotlib") is None else figure_bytes(lambda: table_figure(result), "svg")
    pictures = [svg[svg.index(b"<svg") :].decode() for svg in drawn]
    files = {
        "md": document(result, "markdown"),
        "tex": document(result, "latex"),
        "html": document(result, "html", pictures),
        "json": json.dumps(result.as_json(), indent=2, ensure_ascii=False) + "\n",
    }
    write_all({out / f"{result.table.name}.{ending}": text.encode() for ending, text in files.items()})


def as_table(result: TableResult) -> Table:
    """Return the table as text: for each column the paper's figure, if it prints any, and ours."""
    printed = [any(row.cells[i].paper is not None for row in result.rows) for i in range(len(result.columns))]
    header = [""]
    for column, both in zip(result.columns, printed, strict=True):
        header += [f"{column}, paper", f"{column}, ours"] if both else [f"{column}, ours"]
    trained = any(row.best_steps for row in result.rows)
    header += [f"{result.columns[0]}, 95 % over videos", *(["best after, of steps"] if trained else [])]
    digits = 1 if result.table.percent else 3
    timed = result.table.run_time and any(row.search_seconds is not None for row in result.rows)
    header += ["search, seconds, paper", "search, seconds, ours"] if timed else []
    rows = []
    for row in result.rows:
        line: list[str | Cell] = [row.label]
        for cell, both in zip(row.cells, printed, strict=True):
            line += [decimals(cell.paper, digits + 1)] if both else []
            sd = f" ± {cell.ours.sd:.{digits}f}" if cell.ours.count > 1 else ""
            shown = NO_VALUE if math.isnan(cell.ours.mean) else f"{cell.ours.mean:.{digits}f}{sd}"
            line.append(Cell(shown, raised=cell.letters))
        low, high = (decimals(value, digits) for value in (row.cells[0].low, row.cells[0].high))
        line.append(NO_VALUE if low == NO_VALUE else f"{low} to {high}")
        if trained:
            best = ", ".join(f"{step:,}" for step in row.best_steps)
            line.append(f"{best} of {row.steps:,}" if best else NO_VALUE)
        line += [decimals(row.paper_seconds, 1), decimals(row.search_seconds, 1)] if timed else []
        rows.append(line)
    return Table(header, rows)


MOST_PANELS = 4
"""Maximum number of columns that are drawn; of more, the first ones are drawn."""
MANY_COLUMNS = 9
"""Minimum number of columns for rows to be drawn as curves, if the paper prints no figures."""


def table_figure(result: TableResult) -> Figure:
    """Draw curves if there are many columns and no printed figures, else a panel per column."""
    printed = any(cell.paper is not None for row in result.rows for cell in row.cells)
    return _panels(result) if printed or len(result.columns) < MANY_COLUMNS else _curves(result)


def _panels(result: TableResult) -> Figure:
    """Draw a panel for each of the first columns: a line per row with our mean ± sd and the paper's figure."""
    columns = result.columns[:MOST_PANELS]
    rows = len(result.rows)
    figure, axes = subplots(1, len(columns), 2.2 + 2.4 * len(columns), 1.2 + 0.3 * rows)
    for i, (ax, column) in enumerate(zip(axes[0], columns, strict=True)):
        for y, row in enumerate(result.rows):
            cell = row.cells[i]
            if not math.isnan(cell.ours.mean):
                point_with_error(ax, cell.ours.mean, y, cell.ours.sd, COLOURS[0], MARKERS[0], ms=5)
            if cell.paper is not None:
                ax.plot(cell.paper, y, MARKERS[2], color=COLOURS[1], ms=5)
        label_rows(ax, [row.label for row in result.rows], shown=i == 0)
        ax.set_title(column, fontsize=9, loc="left")
    paper = any(cell.paper is not None for row in result.rows for cell in row.cells)
    ours = "ours, simulated" if result.simulated else "ours"
    entries = [(COLOURS[0], MARKERS[0], ours), *([(COLOURS[1], MARKERS[2], "paper")] if paper else [])]
    marker_legend(figure, entries)
    _note(figure, result)
    return figure


def _curves(result: TableResult) -> Figure:
    """Draw a curve per row over all columns, such as thresholds (Fig. 12 of debiased grounding)."""
    figure, axes = subplots(1, 1, 1.5 + 0.45 * len(result.columns), 4.8)
    ax = axes[0][0]
    places = range(len(result.columns))
    for i, row in enumerate(result.rows):
        look = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[(i // len(COLOURS)) % len(MARKERS)]}
        ax.plot(places, [cell.ours.mean for cell in row.cells], label=row.label, ms=3, lw=1.2, **look)
    ax.set_xticks(list(places), result.columns, rotation=60, ha="right", fontsize=7)
    ax.grid(axis="y", alpha=0.3)
    legend_below(figure, ax, ncols=4, fontsize=7)
    _note(figure, result)
    return figure


def _note(figure: Figure, result: TableResult) -> None:
    if result.simulated:
        figure.suptitle("SIMULATED DATA: our figures do not describe real videos", fontsize=8, color="0.4")
