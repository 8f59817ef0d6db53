"""The explanation as one figure, after Figures 4 and 5 of the TVR paper: words, filters, and a strip per moment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.core.atomic import write_bytes
from momentseek.core.figures import COLOURS, figure_bytes
from momentseek.models.explain.explanation import Explanation, VideoView

if TYPE_CHECKING:
    from matplotlib.figure import Figure


START, END, TRUTH, FOUND, CURVE = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[3], "#333333"
WIDTH, HEAD, STRIP = 9.0, 1.55, 1.9
"""Width of the figure, height of its head and height of each video's strip, in inches."""
BAR_HEIGHT_SHARE = 0.17
"""Height of a bar as a share of the curve's."""
MAX_LEVEL_WORDS = 12
"""Number of words up to which they are written level rather than tilted."""
MAX_SHOWN_WORDS = 28
"""Words that are shown in a row."""


def save(found: Explanation, path: Path) -> None:
    """Draw it into a file, PNG, SVG or PDF by its ending; whole or not at all."""
    (data,) = figure_bytes(lambda: draw(found), path.suffix.lstrip(".").lower())
    write_bytes(path, data)


def draw(found: Explanation) -> Figure:
    """The figure; a strip for each view."""
    from matplotlib.figure import Figure

    strips = [STRIP * (1 + BAR_HEIGHT_SHARE * len(view.found) / 2) for view in found.views]
    figure = Figure(figsize=(WIDTH, HEAD + sum(strips) + 0.75), layout="constrained")
    figure.suptitle(_title(found), x=0.012, ha="left", fontsize=11, fontweight="bold")
    rows = figure.add_gridspec(len(strips) + 1, 1, height_ratios=[HEAD, *strips], hspace=0.06)
    head = rows[0].subgridspec(1, 2, width_ratios=[3.4, 1], wspace=0.05)
    _words(figure.add_subplot(head[0]), found)
    _filters(figure.add_subplot(head[1]), found)
    judged = any(view.relevant for view in found.views)
    for at, view in enumerate(found.views):
        _strip(figure, rows[at + 1], view, judged)
    _legend(figure, judged)
    return figure


def _title(found: Explanation) -> str:
    text = f"“{found.text}”"
    return text if len(text) <= 95 else text[:94] + "…”"


def _words(axes: Any, found: Explanation) -> None:
    """How much of the query's vector each word is, by modality (Figure 4)."""
    if not found.attention:
        axes.text(0, 0.5, "This model has no modular queries: words have no weights of their own.", va="center")
        axes.set_axis_off()
        return
    words = [word.removeprefix("##") for word in found.words[:MAX_SHOWN_WORDS]]
    table = np.array([weights[: len(words)] for weights in found.attention.values()])
    axes.imshow(table, aspect="auto", cmap="Blues", vmin=0, vmax=max(float(table.max()), 1e-9))
    axes.set_xticks(range(len(words)), words)
    if len(words) > MAX_LEVEL_WORDS:
        for label in axes.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(table)), list(found.attention))
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if len(words) <= 18:
        for (row, column), value in np.ndenumerate(table):
            shade = "white" if value > 0.5 * table.max() else "#444444"
            axes.text(column, row, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=7, color=shade)
    axes.set_title("Weight of each word", loc="left", fontsize=9)


def _filters(axes: Any, found: Explanation) -> None:
    """The learned filters (Figure 5)."""
    places = np.arange(len(found.start_filter)) - len(found.start_filter) // 2
    for values, colour, marker in ((found.start_filter, START, "o"), (found.end_filter, END, "s")):
        axes.plot(places, values, color=colour, marker=marker, markersize=4, linewidth=1.4)
    axes.axhline(0, color="#bbbbbb", linewidth=0.7, zorder=0)
    axes.set_xticks(places)
    axes.set_xlabel("clips", labelpad=1, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.set_title("Filters", loc="left", fontsize=9)


def _strip(figure: Figure, place: Any, view: VideoView, judged: bool) -> None:
    """One video: the curve, what the filters answer to it, and truth next to prediction (Figures 4 and 5)."""
    parts = place.subgridspec(
        3, 1, height_ratios=[1.0, 0.85, BAR_HEIGHT_SHARE * (judged + len(view.found))], hspace=0.0
    )
    upper = figure.add_subplot(parts[0])
    lower, bars = (figure.add_subplot(part, sharex=upper) for part in (parts[1], parts[2]))
    seconds = np.asarray(view.edges)
    for axes in (upper, lower):
        for start, end, _ in view.relevant:
            axes.axvspan(start, end, color=TRUTH, alpha=0.13, linewidth=0)
        for moment in view.found[:1]:
            for at in (moment.start, moment.end):
                axes.axvline(at, color=FOUND, linewidth=1.0, linestyle=(0, (3, 2)))
    upper.stairs(view.curve, seconds, color=CURVE, linewidth=1.3, baseline=None)
    lower.stairs(view.start_response, seconds, color=START, linewidth=1.3, baseline=None)
    lower.stairs(view.end_response, seconds, color=END, linewidth=1.3, baseline=None)
    lower.axhline(0, color="#bbbbbb", linewidth=0.7, zorder=0)
    for axes, label in ((upper, "similarity"), (lower, "filters")):
        axes.set_ylabel(label, fontsize=8)
        axes.tick_params(labelsize=7, labelbottom=False, bottom=False)
        axes.locator_params(axis="y", nbins=3)
        axes.margins(y=0.12)
    upper.set_title(_caption(view), loc="left", fontsize=9)
    upper.set_xlim(seconds[0], seconds[-1])
    _bars(bars, view, judged)


def _bars(axes: Any, view: VideoView, judged: bool) -> None:
    """The true moments with their levels, and those found with their ranks, a row each if there are several."""
    for start, end, level in view.relevant:
        axes.barh(0, end - start, 0.8, start, color=TRUTH)
        if level > 1:
            axes.text((start + end) / 2, 0, str(level), ha="center", va="center", fontsize=6, color="white")
    for row, moment in enumerate(view.found):
        alpha = 0.55 if row else 1.0
        axes.barh(row + judged, moment.end - moment.start, 0.8, moment.start, color=FOUND, alpha=alpha)
    labels = [*(["truth"] if judged else []), *(f"#{moment.rank}" for moment in view.found)]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(labelsize=7)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{int(value) // 60}:{int(value) % 60:02d}")
    axes.locator_params(axis="x", nbins=12, steps=[1, 1.5, 2, 3, 5, 6, 10])


def _caption(view: VideoView) -> str:
    if not view.found:
        return f"{view.video}: not found   match {view.match:.3f}"
    best = view.found[0]
    shown = f"#{best.rank}  {view.video}  {best.start:.1f}–{best.end:.1f} s   score {best.score:.2f}"
    overlap = "" if best.overlap is None else f", IoU with the truth {best.overlap:.2f}"
    return f"{shown}, match {view.match:.3f}{overlap}"


def _legend(figure: Figure, judged: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries = [
        Line2D([], [], color=CURVE, label="query–clip similarity"),
        Line2D([], [], color=START, marker="o", markersize=4, label="start filter"),
        Line2D([], [], color=END, marker="s", markersize=4, label="end filter"),
        Patch(color=FOUND, label="found"),
        *([Patch(color=TRUTH, label="truth")] if judged else []),
    ]
    figure.legend(handles=entries, loc="outside lower left", ncols=5, frameon=False, fontsize=8)
