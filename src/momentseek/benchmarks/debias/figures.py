"""The figures of a report: the gap, R and dR by threshold, and where moments and predictions lie."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.benchmarks.debias.report import SPLITS, DebiasReport
from momentseek.core.figures import COLOURS, MARKERS, save_figures, subplots
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.reports import NO_VALUE
from momentseek.measuring.resampling import SeedSpread

if TYPE_CHECKING:
    from matplotlib.figure import Figure


IID, OOD, GREY = "#009E73", "#D55E00", "0.55"
DRAWN_BLIND = "bias-based"
"""The blind baseline whose predictions are drawn: it predicts where training moments are densest."""


def draw(report: DebiasReport, folder: str | Path) -> list[Path]:
    """Write all figures as PNG and SVG into ``folder``; their paths."""
    figures: dict[str, Callable[[], Figure]] = {
        "gap": lambda: gap_figure(report),
        "thresholds": lambda: threshold_figure(report),
        "locations": lambda: location_figure(report),
    }
    if report.verbs:
        figures["locations-by-verb"] = lambda: verb_figure(report)
    return save_figures(figures, folder)


def gap_figure(report: DebiasReport) -> Figure:
    """dR@1 on iid and ood, joined by the gap; one row per system."""
    measures = ("dR@1[IoU>=0.5]", "dR@1[IoU>=0.7]")
    rows = len(report.systems)
    figure, axes = subplots(1, 2, 9.0, 1.3 + 0.36 * rows)
    for ax, measure in zip(axes[0], measures, strict=True):
        found = [g for g in report.gaps if g.measure == measure]
        for y, gap in enumerate(found):
            ax.plot([100 * gap.iid.mean, 100 * gap.ood.mean], [y, y], color="0.8", lw=3, zorder=1)
            for value, colour, marker in ((gap.iid, IID, "o"), (gap.ood, OOD, "D")):
                sd = 0.0 if math.isnan(value.sd) else 100 * value.sd
                ax.errorbar(100 * value.mean, y, xerr=sd or None, fmt=marker, color=colour, ms=6, capsize=2, zorder=2)
        ax.set_yticks(range(rows), [_name(report, s) for s in report.systems] if ax is axes[0][0] else [""] * rows)
        ax.set_ylim(rows - 0.5, -0.5)
        ax.set_xlim(left=-0.02 * ax.get_xlim()[1])
        ax.set_title(f"dR@1 at IoU {measure[-4:-1]}", fontsize=9, loc="left")
        ax.set_xlabel("%")
        ax.grid(axis="x", alpha=0.3)
        models = rows - len(report.blind)
        if 0 < models < rows:
            ax.axhline(models - 0.5, color="0.7", lw=0.8, ls=":")
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=c, marker=m, ls="", label=n) for c, m, n in ((IID, "o", "iid"), (OOD, "D", "ood"))]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    _add_note(figure, report)
    return figure


def threshold_figure(report: DebiasReport) -> Figure:
    """R@1 beside dR@1 by threshold, one row per split, all on one scale (Fig. 12)."""
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
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
    _add_note(figure, report)
    return figure


def location_figure(report: DebiasReport) -> Figure:
    """Where true moments lie, and below them each system's first predictions; one column per split."""
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
                title = f"predicted, {name}" if "train" in columns else f"{_short(system)}, {name}"
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
    """Where the moments of a verb lie in train and ood, and where models predict on ood (Fig. 6)."""
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
            row[column].set_title(f"leans to train: {_share(where.lean)}", fontsize=8)
    for row, label in zip(axes, ["true, train", "true, ood", *(_short(m, 20) for m in models)], strict=True):
        row[0].set_ylabel(f"{label}\nend / duration", fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("start / duration", fontsize=8)
    _add_note(figure, report)
    return figure


def _panel(ax: Any, grid: FloatArray, colours: str) -> None:
    from matplotlib.colors import PowerNorm

    size = len(grid)
    start, end = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    shown = np.ma.masked_where((start > end) | np.isnan(grid), grid).T
    # A full corner would hide the rest on a linear scale.
    norm = PowerNorm(0.5, 0, max(float(np.nanmax(grid)) if not np.isnan(grid).all() else 0.0, 1e-9))
    ax.imshow(shown, origin="lower", extent=(0, 1, 0, 1), cmap=colours, norm=norm, interpolation="nearest")
    ax.plot([0, 1], [0, 1], color="0.6", lw=0.8)
    ax.set_xticks([0, 0.5, 1])
    ax.set_yticks([0, 0.5, 1])
    ax.tick_params(labelsize=7)


def _words(ax: Any, name: str, placing: Any) -> None:
    """A system's name and its distances, where a panel would be."""
    ax.set_axis_off()
    lines = [] if placing is None else [
        "on ood, distance from", f"   train  {_two(placing.to_train)}", f"   ood's truth  {_two(placing.to_truth)}",
        f"leans to train  {_share(placing.lean)}",
    ]  # fmt: skip
    ax.text(0.0, 0.82, "\n".join(_wrap(name)), fontsize=10, fontweight="bold", va="top", transform=ax.transAxes)
    ax.text(0.0, 0.48, "\n".join(lines), fontsize=8, va="top", color="0.25", transform=ax.transAxes)


def _look(report: DebiasReport, system: str) -> dict[str, Any]:
    blind = [s for s in report.systems if s in report.blind]
    if system in report.blind:
        styles: Sequence[Any] = ("--", ":", "-.", (0, (1, 3)))
        return {"color": GREY, "ls": styles[blind.index(system) % 4], "lw": 1.4}
    i = [s for s in report.systems if s not in report.blind].index(system)
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], "ms": 4, "lw": 1.6}


def _map(split: str) -> str:
    return "Greens" if split == "iid" else "Oranges"


def _add_note(figure: Figure, report: DebiasReport) -> None:
    if report.note:
        figure.suptitle(report.note, fontsize=8, color="#B00020")


def _name(report: DebiasReport, system: str) -> str:
    return _short(system) + (" (blind)" if system in report.blind else "")


def _short(name: str, most: int = 34) -> str:
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2 - 1) :]}"


def _wrap(name: str, width: int = 19) -> list[str]:
    return textwrap.wrap(name, width)


def _two(value: SeedSpread) -> str:
    return NO_VALUE if math.isnan(value.mean) else f"{value.mean:.2f}"


def _share(value: SeedSpread) -> str:
    return NO_VALUE if math.isnan(value.mean) else f"{100 * value.mean:.0f} %"
