"""What all figures share: style, colours, and saving them whole; matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MomentseekError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which colour-blind readers can tell apart; markers differ as well."""
MARKERS = "osD^vP*"
PNG_DOTS_PER_INCH = 150
STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "momentseek"}


def check_folder(folder: str | Path) -> None:
    """Refuse what could not be drawn, or not into ``folder``, before anything is computed; nothing is made yet."""
    _matplotlib()
    target = Path(folder)
    there = next(p for p in (target, *target.absolute().parents) if p.exists())
    if not there.is_dir():
        raise MomentseekError(f"{target}: cannot be created as a folder for figures ({there} is not a folder)")
    if not os.access(there, os.W_OK):
        raise MomentseekError(f"{target}: cannot be created as a folder for figures ({there} may not be written to)")


def save_figures(figures: Mapping[str, Callable[[], Figure]], folder: str | Path) -> list[Path]:
    """Draw each figure and write it as PNG and SVG, the same bytes for the same input; the files' paths."""
    matplotlib = _matplotlib()
    if not figures:
        return []
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise MomentseekError(f"{target}: cannot be created as a folder for figures ({e.strerror})") from None
    written = []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with matplotlib.rc_context(STYLE):
        for name, make in figures.items():
            figure = make()
            figure.set_dpi(PNG_DOTS_PER_INCH)
            for canvas, kind, about in (
                (FigureCanvasAgg, "png", {"Software": None}),
                (FigureCanvasSVG, "svg", {"Date": None}),
            ):
                data = io.BytesIO()
                getattr(canvas(figure), f"print_{kind}")(data, metadata=about)  # Figure.savefig draws everything twice
                figure.set_layout_engine("none")  # the second file keeps the first one's, which took as long as drawing
                write_bytes(target / f"{name}.{kind}", data.getvalue())
                written.append(target / f"{name}.{kind}")
    return written


def axes(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A figure of ``width`` × ``height`` inches and its panels, always as rows of columns."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MomentseekError("figures need matplotlib: pip install 'momentseek[plots]'") from None
    return matplotlib
