"""Figures with matplotlib: a common style and palette, shared panels, and saving as PNG and SVG.

matplotlib is imported only when a figure is drawn.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette for colour-blind readers; markers differ as well."""
MARKERS = "osD^vP*"
STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "momentseek"}
PNG_DOTS_PER_INCH = 150
METADATA: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Metadata to omit from each file format, so that the same input gives the same bytes."""


def check_folder(folder: str | Path) -> None:
    """Refuse a missing matplotlib or a folder that cannot be created, before anything is computed."""
    _matplotlib()
    target = Path(folder)
    there = next(p for p in (target, *target.absolute().parents) if p.exists())
    if not there.is_dir():
        raise MomentseekError(f"{target}: cannot be created as a folder for figures ({there} is not a folder)")
    if not os.access(there, os.W_OK):
        raise MomentseekError(f"{target}: cannot be created as a folder for figures ({there} may not be written to)")


def figure_bytes(make: Callable[[], Figure], *kinds: str) -> list[bytes]:
    """Draw a figure and return its bytes in each file format (png, svg, pdf); deterministic."""
    with _matplotlib().rc_context(STYLE):
        figure = make()
        found = []
        for kind in kinds:
            data = io.BytesIO()
            figure.savefig(data, format=kind, dpi=PNG_DOTS_PER_INCH, metadata=METADATA[kind])
            found.append(data.getvalue())
    return found


def draw_figures(figures: Mapping[str, Callable[[], Figure]]) -> dict[str, bytes]:
    """Draw each figure as PNG and SVG: file name → bytes."""
    kinds = ("png", "svg")
    return {
        f"{name}.{kind}": data
        for name, make in figures.items()
        for kind, data in zip(kinds, figure_bytes(make, *kinds), strict=True)
    }


def save_figures(figures: Mapping[str, Callable[[], Figure]], folder: str | Path) -> list[Path]:
    """Draw each figure, write it to ``folder`` as PNG and SVG, and return the files' paths."""
    drawn = draw_figures(figures)
    target = Path(folder)
    if drawn:
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise MomentseekError(f"{target}: cannot be created as a folder for figures ({e.strerror})") from None
    for name, data in drawn.items():
        write_bytes(target / name, data)
    return [target / name for name in drawn]


def subplots(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure of ``width`` × ``height`` inches and its panels as a 2D array."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def line_style(number: int, **more: Any) -> dict[str, Any]:
    """Return colour, marker and width of a plot's line ``number``, from 0; ``more`` adds further settings."""
    look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "ms": 4, "lw": 1.5}
    return {**look, **more}


def point_with_error(ax: Any, value: float, y: float, sd: float, colour: str, marker: str, **more: Any) -> None:
    """Draw a point in row ``y`` with its standard deviation as error bars, if known."""
    error = None if math.isnan(sd) or not sd else sd
    ax.errorbar(value, y, xerr=error, fmt=marker, color=colour, capsize=2, **more)


def label_rows(ax: Any, labels: Sequence[str], *, shown: bool = True, **more: Any) -> None:
    """Label rows from top to bottom, with a horizontal grid; only the leftmost of several panels shows the labels."""
    ax.set_yticks(range(len(labels)), labels if shown else [""] * len(labels), **more)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)


def location_map(ax: Any, values: Any, colours: str, *, top: float | None = None, norm: Any = None, **more: Any) -> Any:
    """Draw values over (start, end) as a heat map of the unit square with its diagonal; ``values`` has a row per end.

    The colour scale is the square root, since on a linear scale a dense corner would hide the rest. ``top`` is the
    value of the darkest colour, and ``norm`` replaces the scale.
    """
    from matplotlib.colors import PowerNorm

    scale = norm or PowerNorm(0.5, 0, max(float(values.max()) if top is None else top, 1e-9))
    image = ax.imshow(values, origin="lower", extent=(0, 1, 0, 1), cmap=colours, norm=scale, **more)
    ax.plot([0, 1], [0, 1], color="0.6", lw=0.8)
    ax.set_xticks([0, 0.5, 1])
    ax.set_yticks([0, 0.5, 1])
    return image


def legend_below(figure: Figure, ax: Any, *, ncols: int, **more: Any) -> None:
    """Draw one legend below all panels, with the entries of the panel ``ax``."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=ncols, frameon=False, **more)


def marker_legend(figure: Figure, entries: Iterable[tuple[str, str, str]]) -> None:
    """Draw a legend of markers below all panels; entries are colour, marker and label."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, marker=marker, ls="", label=label) for colour, marker, label in entries]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def shorten(name: str, limit: int = 24) -> str:
    """Shorten a name in the middle if it is longer than ``limit``.

    >>> shorten("a-run-with-a-very-long-name", 12)
    'a-run-…-name'
    """
    return name if len(name) <= limit else f"{name[: limit // 2]}…{name[-(limit // 2 - 1) :]}"


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MomentseekError("figures need matplotlib: pip install 'momentseek[plots]'") from None
    return matplotlib
