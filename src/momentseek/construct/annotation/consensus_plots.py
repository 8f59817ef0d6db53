"""Figures 5a and 5b of TVR-Ranking for any labels, as PNG and SVG; matplotlib is imported only when asked for."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from momentseek.construct.annotation.labels import LEVEL_COUNT
from momentseek.construct.annotation.scores import LabelDistributions
from momentseek.figures import COLOURS, save_figures
from momentseek.figures import axes as axes_of
from momentseek.moments.arrays import IntArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_consensus(pictures: LabelDistributions, folder: str | Path) -> list[Path]:
    """Write both figures into ``folder``; the files' paths."""
    figures = {"lowest-highest": partial(draw_matrices, pictures), "scores": partial(draw_levels, pictures)}
    return save_figures(figures, folder)


def draw_matrices(pictures: LabelDistributions) -> Figure:
    """Pairs by lowest and highest label: all labels (figure 5a), and the two that count."""
    figure, (axes,) = axes_of(1, 2, 7.6, 3.7)
    panels: list[tuple[str, IntArray]] = [("all labels", pictures.every), ("the two that count", pictures.counting)]
    for ax, (title, counts) in zip(axes, panels, strict=True):
        share = 100 * counts / max(1, counts.sum())
        shown = np.ma.masked_array(share, np.tril(np.ones_like(counts, dtype=bool), -1))
        ax.imshow(shown, cmap="Blues", vmin=0)
        for low in range(LEVEL_COUNT):
            for high in range(low, LEVEL_COUNT):
                colour = "white" if share[low, high] > share.max() / 2 else "black"
                ax.text(high, low, f"{share[low, high]:.2f}", ha="center", va="center", color=colour, fontsize=8)
        ax.set_title(f"{title} (% of {int(counts.sum()):,} pairs)", fontsize=9, loc="left")
        ax.set_xlabel("highest label")
        ax.set_xticks(range(LEVEL_COUNT))
        ax.set_yticks(range(LEVEL_COUNT))
    axes[0].set_ylabel("lowest label")
    return figure


def draw_levels(pictures: LabelDistributions) -> Figure:
    """Labels by level before, kept pairs by level after (figure 5b)."""
    figure, (axes,) = axes_of(1, 2, 7.6, 3.0)
    panels = [("labels before", pictures.raw), ("pairs after (final relevance)", pictures.final)]
    for ax, (title, counts), colour in zip(axes, panels, COLOURS, strict=False):
        bars = ax.bar(range(LEVEL_COUNT), counts, 0.7, color=colour)
        ax.bar_label(bars, labels=[f"{100 * n / max(1, counts.sum()):.1f} %" for n in counts], fontsize=8)
        ax.set_title(f"{title}: {int(counts.sum()):,}", fontsize=9, loc="left")
        ax.set_xlabel("relevance")
        ax.set_xticks(range(LEVEL_COUNT))
    return figure
