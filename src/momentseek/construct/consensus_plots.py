"""Figures 5a and 5b of TVR-Ranking for any labels, as PNG and SVG; matplotlib is imported only when asked for."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from momentseek.construct.labels import LEVELS
from momentseek.construct.scores import Scores
from momentseek.errors import MomentseekError
from momentseek.evaluation.diagnose.plots import COLOURS, STYLE
from momentseek.formats import write_bytes
from momentseek.moments.arrays import IntArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(pictures: Scores, folder: str | Path) -> list[Path]:
    """Write both figures into ``folder``; the files' paths."""
    try:
        import matplotlib
    except ImportError:
        raise MomentseekError("figures need matplotlib: pip install 'momentseek[plots]'") from None
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be made a folder for figures ({e.strerror})") from None
    written = []
    with matplotlib.rc_context(STYLE):
        for name, figure in (("lowest-highest", matrices(pictures)), ("scores", distributions(pictures))):
            for kind, about in (("png", {"Software": None}), ("svg", {"Date": None})):
                data = io.BytesIO()
                figure.savefig(data, format=kind, dpi=150, metadata=about)
                write_bytes(target / f"{name}.{kind}", data.getvalue())
                written.append(target / f"{name}.{kind}")
    return written


def matrices(pictures: Scores) -> Figure:
    """Pairs by lowest and highest label: all labels (figure 5a), and the two that count."""
    figure, axes = _axes(2, 7.6, 3.7)
    panels: list[tuple[str, IntArray]] = [("all labels", pictures.every), ("the two that count", pictures.counting)]
    for ax, (title, counts) in zip(axes, panels, strict=True):
        share = 100 * counts / max(1, counts.sum())
        shown = np.ma.masked_array(share, np.tril(np.ones_like(counts, dtype=bool), -1))
        ax.imshow(shown, cmap="Blues", vmin=0)
        for low in range(LEVELS):
            for high in range(low, LEVELS):
                colour = "white" if share[low, high] > share.max() / 2 else "black"
                ax.text(high, low, f"{share[low, high]:.2f}", ha="center", va="center", color=colour, fontsize=8)
        ax.set_title(f"{title} (% of {int(counts.sum()):,} pairs)", fontsize=9, loc="left")
        ax.set_xlabel("highest label")
        ax.set_xticks(range(LEVELS))
        ax.set_yticks(range(LEVELS))
    axes[0].set_ylabel("lowest label")
    return figure


def distributions(pictures: Scores) -> Figure:
    """Labels by level before, kept pairs by level after (figure 5b)."""
    figure, axes = _axes(2, 7.6, 3.0)
    panels = [("labels before", pictures.raw), ("pairs after (final relevance)", pictures.final)]
    for ax, (title, counts), colour in zip(axes, panels, COLOURS, strict=False):
        bars = ax.bar(range(LEVELS), counts, 0.7, color=colour)
        ax.bar_label(bars, labels=[f"{100 * n / max(1, counts.sum()):.1f} %" for n in counts], fontsize=8)
        ax.set_title(f"{title}: {int(counts.sum()):,}", fontsize=9, loc="left")
        ax.set_xlabel("relevance")
        ax.set_xticks(range(LEVELS))
    return figure


def _axes(columns: int, width: float, height: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns)
