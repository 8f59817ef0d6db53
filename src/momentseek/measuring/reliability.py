"""Whether a search is as sure as it is right: the share of right hits by level, and by score, with intervals.

A level is a promise, and a reliability diagram shows whether it is kept: what was said on one axis, how often it was
true on the other (Murphy and Winkler, Reliability of Subjective Probability Forecasts, 1977).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from momentseek.core.figures import COLOURS, MARKERS, save_figures, subplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure


RIGHT_RELEVANCE = 3.0
"""Relevance from which a moment is what was asked for, on TVR-Ranking's scale from 0 to 4."""
NORMAL_95 = 1.959963984540054
"""Standard deviations on either side of the mean that hold 95 % of a normal distribution."""


@dataclass(frozen=True)
class ReliabilityBin:
    """The hits of one level, or of one range of scores: how many there are, and how many of them are right.

    >>> strong = ReliabilityBin("strong", right=15, count=16)
    >>> strong.share, *(round(end, 2) for end in strong.interval)
    (0.9375, 0.72, 0.99)
    """

    name: str
    right: int
    count: int

    @property
    def share(self) -> float | None:
        """Share of the hits that are right; None if there are no hits."""
        return self.right / self.count if self.count else None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share may lie, with 95 % confidence: Wilson's interval (1927), which suits few hits."""
        if not self.count:
            return 0.0, 1.0
        n, share, z = self.count, self.right / self.count, NORMAL_95
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def bins_by_level(hits: Iterable[tuple[str, bool]], levels: Sequence[str]) -> list[ReliabilityBin]:
    """A bin for each level, given the level of each hit and whether it is right.

    >>> [(bin.name, bin.right, bin.count) for bin in bins_by_level([("b", True), ("b", False)], ["a", "b"])]
    [('a', 0, 0), ('b', 1, 2)]
    """
    given = list(hits)
    return [
        ReliabilityBin(level, sum(right for one, right in given if one == level), sum(one == level for one, _ in given))
        for level in levels
    ]


def bins_by_score(hits: Iterable[tuple[float, bool]], count: int = 5) -> list[ReliabilityBin]:
    """Bins of about as many hits each, by ascending score, named by the mean score of their hits.

    >>> [(bin.name, bin.right, bin.count) for bin in bins_by_score([(0.1, False), (0.2, False), (0.8, True)], 2)]
    [('0.15', 0, 2), ('0.80', 1, 1)]
    """
    given = sorted(hits)
    parts = [part for part in np.array_split(np.arange(len(given)), count) if len(part)]
    return [
        ReliabilityBin(
            f"{np.mean([given[at][0] for at in part]):.2f}", sum(given[at][1] for at in part.tolist()), len(part)
        )
        for part in parts
    ]


def draw_reliability(panels: dict[str, dict[str, Sequence[ReliabilityBin]]]) -> Figure:
    """A panel for each title, in which each series of bins is a line of shares with their intervals."""
    figure, grid = subplots(1, len(panels), 3.4 * len(panels), 3.0)
    for axes, (title, series) in zip(grid[0], panels.items(), strict=True):
        for at, (name, bins) in enumerate(series.items()):
            shown = [(place, bin) for place, bin in enumerate(bins) if bin.share is not None]
            places = [place + 0.12 * (at - (len(series) - 1) / 2) for place, _ in shown]
            shares = [bin.right / bin.count for _, bin in shown]
            ends = [bin.interval for _, bin in shown]
            errors = [
                [share - low for share, (low, _) in zip(shares, ends, strict=True)],
                [high - share for share, (_, high) in zip(shares, ends, strict=True)],
            ]
            axes.errorbar(
                places, shares, errors, label=name, color=COLOURS[at % len(COLOURS)],
                marker=MARKERS[at % len(MARKERS)], capsize=3, linewidth=1,
            )  # fmt: skip
        longest = max(series.values(), key=len)
        axes.set_xticks(range(len(longest)), [bin.name for bin in longest])
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel(title)
        axes.set_ylabel("share of hits that are right")
        axes.grid(axis="y", linewidth=0.4)
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, fontsize=8, frameon=False, loc="outside lower center", ncols=2)
    return figure


def save_reliability(panels: dict[str, dict[str, Sequence[ReliabilityBin]]], folder: str | Path) -> list[Path]:
    """Write the diagram as ``reliability.png`` and ``reliability.svg``."""
    return save_figures({"reliability": lambda: draw_reliability(panels)}, folder)
