"""Figures are drawn in one style, and the same input gives the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.core.figures import (
    check_folder,
    draw_figures,
    label_rows,
    legend_below,
    line_style,
    location_map,
    marker_legend,
    point_with_error,
    save_figures,
    subplots,
)

pytest.importorskip("matplotlib")


def every_panel() -> Any:
    figure, axes = subplots(1, 3, 9, 3)
    axes[0][0].plot([0, 1], [1, 0], label="falls", **line_style(8))
    legend_below(figure, axes[0][0], ncols=1)
    point_with_error(axes[0][1], 0.5, 0, float("nan"), "red", "o")
    point_with_error(axes[0][1], 0.6, 1, 0.1, "red", "o")
    label_rows(axes[0][1], ["first", "second"])
    location_map(axes[0][2], np.eye(4), "Greens")
    location_map(axes[0][2], np.zeros((4, 4)), "Greens")
    marker_legend(figure, [("red", "o", "found")])
    return figure


def test_figures_are_deterministic() -> None:
    one, two = (draw_figures({"panels": every_panel}) for _ in range(2))
    assert list(one) == ["panels.png", "panels.svg"]
    assert one == two
    assert one["panels.png"].startswith(b"\x89PNG")
    assert b"<svg" in one["panels.svg"]


def test_saving_creates_the_folder(tmp_path: Path) -> None:
    assert save_figures({}, tmp_path / "none") == []
    assert not (tmp_path / "none").exists()
    paths = save_figures({"a": every_panel}, tmp_path / "new" / "folder")
    assert [path.name for path in paths if path.is_file()] == ["a.png", "a.svg"]


def test_bad_folder_is_refused_before_drawing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_folder(tmp_path / "new" / "folder")
    with pytest.raises(MomentseekError, match="is not a folder"):
        check_folder(tmp_path / "file" / "folder")
    with pytest.raises(MomentseekError, match="cannot be created"):
        save_figures({"a": every_panel}, tmp_path / "file" / "folder")
