"""The figures of a diagnosis, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.core.figures import (
    COLOURS,
    label_rows,
    legend_below,
    line_style,
    location_map,
    save_figures,
    shorten,
    subplots,
)
from momentseek.core.reports import decimals
from momentseek.measuring.diagnose.diagnosis import Diagnosis
from momentseek.measuring.diagnose.label_noise import EXAMPLE_IOU, NoiseReport, recall_errors
from momentseek.measuring.diagnose.location_bias import Density, LocationReport
from momentseek.measuring.diagnose.ties import TieReport, all_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 3


def draw(diagnosis: Diagnosis, folder: str | Path) -> list[Path]:
    """Write the figures of all parts that were run to ``folder`` and return their paths; axioms have no figure."""
    figures: dict[str, Callable[[], Figure]] = {}
    for i, report in enumerate(diagnosis.ties or ()):
        figures["ties" + f"-{i + 1}" * (i > 0)] = partial(ties_figure, report)
    for i, noise in enumerate(diagnosis.noise or ()):
        figures["label-noise" + f"-{i + 1}" * (i > 0)] = partial(noise_figure, noise)
    if diagnosis.location:
        figures["recall-by-threshold"] = partial(recall_figure, diagnosis.location)
        figures["locations"] = partial(density_figure, diagnosis.location)
    return save_figures(figures, folder)


def ties_figure(report: TieReport) -> Figure:
    """Draw the all-tied query ratio of every measure, by the value at which the runs tie (AxIoU supplement, Fig. 1)."""
    tied = report.measures
    figure, axes = subplots(1, 1, 6.4, 1.2 + 0.27 * len(tied))
    ax = axes[0][0]
    left = np.zeros(len(tied))
    parts = {
        "all at 0": [t.at_zero for t in tied],
        "all at 1": [t.at_one for t in tied],
        "all at another value": [max(0.0, t.ratio - t.at_zero - t.at_one) for t in tied],
    }
    for (label, shares), colour in zip(parts.items(), COLOURS, strict=False):
        width = 100 * np.array(shares)
        ax.barh(range(len(tied)), width, 0.7, left=left, label=label, color=colour)
        left += width
    for y, total in enumerate(left):
        ax.annotate(f"{total:.1f}", (total, y), (3, 0), textcoords="offset points", va="center", fontsize=8)
    label_rows(ax, [t.measure for t in tied])
    ax.set_xlim(0, 108)
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel(f"queries on which {all_runs(report)} score the same (%)")
    ax.set_title(f"{Path(report.truth).name}, {report.queries:,} queries", fontsize=9, loc="left")
    legend_below(figure, ax, ncols=3)
    return figure


def noise_figure(report: NoiseReport) -> Figure:
    """Draw bias², variance and MSE of R@1 by threshold and of AxIoU@1 (Fig. 2), at IoU 0.5 and on the runs' IoUs."""
    runs = report.runs[: MAX_ROWS - 1]
    figure, axes = subplots(1 + len(runs), 3, 8.4, 0.8 + 2.3 * (1 + len(runs)))
    fine = np.linspace(0, 1, 401)
    for i, gamma in enumerate(report.gammas):
        exact = recall_errors(np.full(len(fine), EXAMPLE_IOU), fine, gamma)
        _draw_errors(axes[0], fine, exact.bias**2, exact.variance, gamma, line_style(i, marker=""))
        for row, run in zip(axes[1:], runs, strict=True):
            curve = run.curves[i]
            squared, scatter = np.array(curve.bias_squared), np.array(curve.variance)
            _draw_errors(row, curve.thresholds, squared, scatter, gamma, line_style(i, ms=3))
    titles = [
        f"one query, true IoU {EXAMPLE_IOU}",
        *(f"mean over {r.queries:,} queries\nof {shorten(r.run)}" for r in runs),
    ]
    for row, title in zip(axes, titles, strict=True):
        row[0].set_ylabel(title)
        top = max(ax.get_ylim()[1] for ax in row)
        for ax in row:
            ax.set(xlim=(0, 1), ylim=(0, top))
    for ax, title in zip(axes[0], ("bias²", "variance", "mean squared error"), strict=True):
        ax.set_title(title)
    for ax in axes[-1]:
        ax.set_xlabel("IoU threshold θ of R@1")
    if report.clip:
        figure.suptitle("noise as in the paper, not clipped", fontsize=9)
    legend_below(figure, axes[0][0], ncols=len(report.gammas))
    return figure


def _draw_errors(row: Sequence[Any], x: Any, squared: Any, scatter: Any, gamma: float, look: dict[str, Any]) -> None:
    for ax, values, axiou in zip(row, (squared, scatter, squared + scatter), (0.0, gamma**2, gamma**2), strict=True):
        ax.plot(x, values, label=f"R@1, γ = {gamma:g}", **look)
        ax.axhline(axiou, label=f"AxIoU@1, γ = {gamma:g}", color=look["color"], lw=1.2, ls="--")


def recall_figure(report: LocationReport) -> Figure:
    """Draw R@1 and dR@1 by IoU threshold (debiased grounding, Fig. 12), one panel per truth."""
    figure, axes = subplots(1, len(report.sides), 4.6 * len(report.sides), 3.9)
    top = 100 * max(run.curve.recall[0] for side in report.sides for run in side.runs)
    for ax, side in zip(axes[0], report.sides, strict=True):
        for i, run in enumerate(side.runs):
            x, look = run.curve.thresholds, line_style(i)
            ax.plot(x, [100 * v for v in run.curve.recall], label=f"{shorten(run.run)}: R@1", **look)
            ax.plot(x, [100 * v for v in run.curve.discounted], label="dR@1", ls="--", mfc="white", **look)
        ax.set_title(f"{Path(side.truth).name}, {side.queries:,} queries", fontsize=9, loc="left")
        ax.set_xlabel("IoU threshold")
        ax.set_xticks(side.runs[0].curve.thresholds)
        ax.set_ylim(0, max(5.0, 1.05 * top))
        ax.grid(axis="y", alpha=0.3)
        ax.legend(frameon=False, fontsize=8)
    axes[0][0].set_ylabel("queries hit, and hits discounted (%)")
    return figure


def density_figure(report: LocationReport) -> Figure:
    """Draw where true moments and first predictions start and end, as fractions of the video, one row per truth."""
    from matplotlib.colors import LogNorm

    columns = 1 + max(len(side.runs) for side in report.sides)
    figure, axes = subplots(len(report.sides), columns, 0.9 + 2.5 * columns, 0.5 + 2.7 * len(report.sides))
    for row, side in zip(axes, report.sides, strict=True):
        panels = [(f"true moments\n{Path(side.truth).name}", side.true)]
        panels += [(f"{shorten(r.run)}\nJS divergence {decimals(r.divergence, 2)}", r.predicted) for r in side.runs]
        shares = [_shares(d) for _, d in panels]
        filled = np.concatenate([[1.0] if not any(s.any() for s in shares) else [], *(s[s > 0] for s in shares)])
        # One cell may hold nearly all predictions, so a linear scale would hide the others.
        scale = LogNorm(filled.min() * 0.99, filled.max() * 1.01)
        for ax in row[len(panels) :]:
            ax.set_axis_off()
        for ax, (title, _), share in zip(row, panels, shares, strict=False):
            image = location_map(ax, np.ma.masked_equal(share.T, 0), "viridis_r", norm=scale)
            ax.set_title(title, fontsize=8)
            ax.set_xlabel("start / duration")
        row[0].set_ylabel("end / duration")
        figure.colorbar(image, ax=list(row), label="moments per cell (%), log", format="%g", shrink=0.85)
    return figure


def _shares(density: Density) -> Any:
    return 100 * density.counts / max(1, density.moments)
