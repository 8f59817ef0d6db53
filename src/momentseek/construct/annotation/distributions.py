"""How labels are distributed: lowest against highest label of a pair, and labels and pairs by level; with figures.

TVR-Ranking, appendix B.4: figure 5a counts pairs by the lowest and the highest of their raw labels, figure 5b by
their final level. matplotlib is imported only for drawing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from momentseek.construct.annotation.consensus import Consensus
from momentseek.construct.annotation.labels import LEVEL_COUNT
from momentseek.figures import COLOURS, save_figures
from momentseek.figures import axes as axes_of
from momentseek.moments.arrays import IntArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class LabelDistributions:
    """Pairs counted by (lowest, highest) label in three ways, and levels before and after the consensus."""

    first_two: IntArray
    """Pairs by their first two labels, before two more were asked. This relies on the file's order: if rows of a pair
    are sorted by worker, as in TVR-Ranking's file, the first two need not be those who judged first."""
    every: IntArray
    """Pairs by all their labels: figure 5a."""
    counting: IntArray
    """Pairs by the two labels that count, after the extremes of four were set aside."""
    raw: IntArray
    """Number of labels at each level."""
    final: IntArray
    """Number of kept pairs at each level: figure 5b."""


def label_distributions(found: Consensus) -> LabelDistributions:
    """Count labels and complete pairs; entry (a, b) of a matrix counts pairs with lowest a and highest b.

    >>> from momentseek.construct.annotation.consensus import find_consensus
    >>> from momentseek.construct.annotation.labels import group_labels
    >>> four = find_consensus(group_labels([("p", w, r) for w, r in enumerate((0, 3, 2, 1))]))
    >>> found = label_distributions(four)
    >>> [np.argwhere(m).tolist() for m in (found.first_two, found.every, found.counting)]
    [[[0, 3]], [[0, 3]], [[1, 2]]]
    """
    labels, complete = found.labels, found.complete
    start = labels.offsets[:-1]
    rows = np.flatnonzero(labels.counts > 0)
    lowest = np.minimum.reduceat(labels.relevance, start[rows])[complete[rows]]
    highest = np.maximum.reduceat(labels.relevance, start[rows])[complete[rows]]
    one, other = labels.relevance[start[complete]], labels.relevance[start[complete] + 1]
    return LabelDistributions(
        _matrix(np.minimum(one, other), np.maximum(one, other)),
        _matrix(lowest, highest),
        _matrix(found.low[complete], found.high[complete]),
        np.bincount(labels.relevance, minlength=LEVEL_COUNT),
        found.levels,
    )


def _matrix(low: IntArray, high: IntArray) -> IntArray:
    return np.bincount(low * LEVEL_COUNT + high, minlength=LEVEL_COUNT * LEVEL_COUNT).reshape(LEVEL_COUNT, LEVEL_COUNT)


def draw_consensus(distributions: LabelDistributions, folder: str | Path) -> list[Path]:
    """Draw both figures as PNG and SVG into ``folder``; returns the files' paths."""
    figures = {"lowest-highest": partial(draw_matrices, distributions), "scores": partial(draw_levels, distributions)}
    return save_figures(figures, folder)


def draw_matrices(distributions: LabelDistributions) -> Figure:
    """Draw pairs by lowest and highest label: of all labels (figure 5a), and of the two that count."""
    figure, (axes,) = axes_of(1, 2, 7.6, 3.7)
    panels: list[tuple[str, IntArray]] = [
        ("all labels", distributions.every),
        ("the two that count", distributions.counting),
    ]
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


def draw_levels(distributions: LabelDistributions) -> Figure:
    """Draw labels by level before the consensus, and kept pairs by level after it (figure 5b)."""
    figure, (axes,) = axes_of(1, 2, 7.6, 3.0)
    panels = [("labels before", distributions.raw), ("pairs after (final relevance)", distributions.final)]
    for ax, (title, counts), colour in zip(axes, panels, COLOURS, strict=False):
        bars = ax.bar(range(LEVEL_COUNT), counts, 0.7, color=colour)
        ax.bar_label(bars, labels=[f"{100 * n / max(1, counts.sum()):.1f} %" for n in counts], fontsize=8)
        ax.set_title(f"{title}: {int(counts.sum()):,}", fontsize=9, loc="left")
        ax.set_xlabel("relevance")
        ax.set_xticks(range(LEVEL_COUNT))
    return figure
