"""The figures of a report: the gap, R and dR by threshold, and the locations of moments and predictions."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.benchmarks.debias.report import SPLITS, DebiasReport
from momentseek.core.figures import (
    label_rows,
    legend_below,
    line_style,
    location_map,
    marker_legend,
    point_with_error,
    save_figures,
    shorten,
    subplots,
)
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.reports import decimals, percentage

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SPLIT_MARKS = (("#009E73", "o", "iid"), ("#D55E00", "D", "ood"))
GREY = "0.55"
DRAWN_BLIND = "bias-based"
"""The blind baseline whose predictions are plotted: it predicts where training moments are densest."""


def draw(report: DebiasReport, folder: str | Path) -> list[Path]:
    """Write all figures as PNG and SVG to ``folder`` and return their paths."""
    figures: dict[str, Callable[[], Figure]] = {
        "gap": lambda: gap_figure(report),
        "thresholds": lambda: threshold_figure(report),
        "locations": lambda: location_figure(report),
    }
    if report.verbs:
        figures["locations-by-verb"] = lambda: verb_figure(report)
    return save_figures(figures, folder)


def gap_figure(report: DebiasReport) -> Figure:
    """Draw dR@1 on iid and ood, joined by the gap, one row per system."""
    measures = ("dR@1[IoU>=0.5]", "dR@1[IoU>=0.7]")
    rows = len(report.systems)
    figure, axes = subplots(1, 2, 9.0, 1.3 + 0.36 * rows)
    for ax, measure in zip(axes[0], measures, strict=True):
        found = [g for g in report.gaps if g.measure == measure]
        for y, gap in enumerate(found):
            ax.plot([100 * gap.iid.mean, 100 * gap.ood.mean], [y, y], color="0.8", lw=3, zorder=1)
            for value, (colour, marker, _) in zip((gap.iid, gap.ood), SPLIT_MARKS, strict=True):
                point_with_error(ax, 100 * value.mean, y, 100 * value.sd, colour, marker, ms=6, zorder=2)
        label_rows(ax, [_name(report, s) for s in report.systems], shown=ax is axes[0][0])
        ax.set_xlim(left=-0.02 * ax.get_xlim()[1])
        ax.set_title(f"dR@1 at IoU {measure[-4:-1]}", fontsize=9, loc="left")
        ax.set_xlabel("%")
        models = rows - len(report.blind)
        if 0 < models < rows:
            ax.axhline(models - 0.5, color="0.7", lw=0.8, ls=":")
    marker_legend(figure, SPLIT_MARKS)
    _add_note(figure, report)
    return figure


def threshold_figure(report: DebiasReport) -> Figure:
    """Draw R@1 and dR@1 by threshold, one row per split, all on one scale (Fig. 12)."""
    figure, axes = subplots(2, 2, 8.6, 6.6)
    top = 100 * max((v.mean for c in report.curves for v in c.values if not math.isnan(v.mean)), default=1.0)
    looks = {name: _look(report, name) for name in report.systems}
    for row, split in zip(axes, SPLITS, strict=True):
        for ax, kind in zip(row, ("R", "dR"), strict=True):
            for curve in (c for c in report.curves if (c.split, c.kind) == (split, kind)):
                ax.plot(
                    curve.thresholds, [100 * v.mean for v in curve.values],
                    label=_name(report, curve.system), **looks[curve.system],
                )  # fmt: skip
            ax.set_title(f"{kind}@1, {split}", fontsize=9, loc="left")
            ax.set_xticks([0.1, 0.3, 0.5, 0.7, 0.9])
            ax.set_ylim(0, max(5.0, 1.04 * top))
            ax.grid(axis="y", alpha=0.3)
        row[0].set_ylabel("%")
    for ax in axes[1]:
        ax.set_xlabel("IoU threshold")
    legend_below(figure, axes[0][0], ncols=min(4, len(report.systems)))
    _add_note(figure, report)
    return figure


def location_figure(report: DebiasReport) -> Figure:
    """Draw the locations of true moments and, below them, of each system's first predictions; one column per split."""
    drawn = [s for s in report.systems if s not in report.blind or s == DRAWN_BLIND]
    columns = [name for name in ("train", "iid", "ood") if name in report.truths]
    figure, axes = subplots(1 + len(drawn), len(columns), 0.5 + 2.35 * len(columns), 0.6 + 2.2 * (1 + len(drawn)))
    for ax, name in zip(axes[0], columns, strict=True):
        _panel(ax, report.truths[name], "Greys" if name == "train" else _map(name))
        ax.set_title(f"true moments, {name}", fontsize=9)
    for row, system in zip(axes[1:], drawn, strict=True):
        found = {p.split: p for p in report.placings if p.system == system}
        for ax, name in zip(row, columns, strict=True):
            if name == "train":
                _words(ax, _name(report, system), found.get("ood"))
            elif name in found:
                _panel(ax, found[name].density, _map(name))
                title = f"predicted, {name}" if "train" in columns else f"{shorten(system, 34)}, {name}"
                ax.set_title(title, fontsize=9)
            else:
                ax.set_axis_off()
    for row in axes:
        first = next((ax for ax in row if ax.axison), None)
        if first is not None:
            first.set_ylabel("end / duration", fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("start / duration", fontsize=8)
    _add_note(figure, report)
    return figure


def verb_figure(report: DebiasReport) -> Figure:
    """Draw the locations of a verb's moments in train and ood, and of the models' predictions on ood (Fig. 6)."""
    models = [s for s in report.systems if s not in report.blind] or [report.systems[0]]
    rows = 2 + len(models)
    figure, axes = subplots(rows, len(report.verbs), 0.9 + 2.1 * len(report.verbs), 0.6 + 2.15 * rows)
    for column, verb in enumerate(report.verbs):
        _panel(axes[0][column], verb.train_density, "Greys")
        _panel(axes[1][column], verb.ood_density, _map("ood"))
        axes[0][column].set_title(f"{verb.verb}, train: {verb.train:,}", fontsize=9)
        axes[1][column].set_title(f"{verb.verb}, ood: {verb.ood:,}", fontsize=9)
        by_name = {each.system: each for each in verb.systems}
        for row, system in zip(axes[2:], models, strict=True):
            where = by_name[system].placing
            if where is None:
                row[column].set_axis_off()
                continue
            _panel(row[column], where.density, "Blues")
            row[column].set_title(f"leans to train: {percentage(where.lean.mean, 0)}", fontsize=8)
    for row, label in zip(axes, ["true, train", "true, ood", *(shorten(m, 20) for m in models)], strict=True):
        row[0].set_ylabel(f"{label}\nend / duration", fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("start / duration", fontsize=8)
    _add_note(figure, report)
    return figure


def _panel(ax: Any, grid: FloatArray, colours: str) -> None:
    start, end = np.indices(grid.shape)
    shown = np.ma.masked_where((start > end) | np.isnan(grid), grid).T
    location_map(
        ax, shown, colours, top=0.0 if np.isnan(grid).all() else float(np.nanmax(grid)), interpolation="nearest"
    )
    ax.tick_params(labelsize=7)


def _words(ax: Any, name: str, placing: Any) -> None:
    """Write a system's name and its distances in place of a panel."""
    ax.set_axis_off()
    lines = [] if placing is None else [
        "on ood, distance from",
        f"   train  {decimals(placing.to_train.mean, 2)}",
        f"   ood's truth  {decimals(placing.to_truth.mean, 2)}",
        f"leans to train  {percentage(placing.lean.mean, 0)}",
    ]  # fmt: skip
    title, at = "\n".join(textwrap.wrap(name, 19)), ax.transAxes
    ax.text(0.0, 0.82, title, fontsize=10, fontweight="bold", va="top", transform=at)
    ax.text(0.0, 0.48, "\n".join(lines), fontsize=8, va="top", color="0.25", transform=at)


def _look(report: DebiasReport, system: str) -> dict[str, Any]:
    blind = [s for s in report.systems if s in report.blind]
    if system in report.blind:
        styles: Sequence[Any] = ("--", ":", "-.", (0, (1, 3)))
        return {"color": GREY, "ls": styles[blind.index(system) % 4], "lw": 1.4}
    i = [s for s in report.systems if s not in report.blind].index(system)
    return line_style(i, lw=1.6)


def _map(split: str) -> str:
    return "Greens" if split == "iid" else "Oranges"


def _add_note(figure: Figure, report: DebiasReport) -> None:
    if report.note:
        figure.suptitle(report.note, fontsize=8, color="#B00020")


def _name(report: DebiasReport, system: str) -> str:
    return shorten(system, 34) + (" (blind)" if system in report.blind else "")
