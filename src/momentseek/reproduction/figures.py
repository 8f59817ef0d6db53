"""The figures of a finished table: our figures beside the paper's, row by row, and curves where columns are a scale."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

from momentseek.figures import COLOURS, MARKERS, STYLE
from momentseek.figures import axes as axes_of
from momentseek.reproduction.result import TableResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    figure, axes = axes_of(1, len(columns), 2.2 + 2.4 * len(columns), 1.2 + 0.3 * rows)
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
    figure, axes = axes_of(1, 1, 1.5 + 0.45 * len(result.columns), 4.8)
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
