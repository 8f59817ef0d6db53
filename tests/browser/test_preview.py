from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from momentseek import Library

RED, BLUE = (200, 30, 30), (30, 30, 200)


@pytest.fixture
def odd(demo: Path, tmp_path: Path, make_video: Callable[..., Path], serving: Callable[..., Any]) -> Any:
    """A server of a library with films that Chromium does not play."""
    films = tmp_path / "films"
    films.mkdir()
    scenes = [(2.0, RED), (2.0, BLUE)]
    hevc = {"preset": "ultrafast", "x265-params": "log-level=none"}
    make_video(films / "old.avi", scenes, rate=10, codec="mpeg4", audio="mp3")
    make_video(films / "new.mp4", scenes, rate=10, codec="libx265", options=hevc, audio=True)
    shutil.copytree(demo / "library", tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        assert library.add(films).added == 2
    return serving(tmp_path / "library")


def test_what_the_browser_cannot_play_is_shown_as_a_preview(
    odd: Any, open_page: Callable[..., Any], settled: Callable[[Any], float]
) -> None:
    for name in ("old.avi", "new.mp4"):
        page = open_page(f"{odd.address}#v={odd.ids[name]}&t=2.5,3.5", reduced_motion="reduce")
        page.set_default_timeout(30_000)
        page.wait_for_selector(".player .problem:has-text('A preview')")
        assert settled(page) == pytest.approx(2.5, abs=0.05)
        assert page.locator(".player .stage .problem").is_hidden()
        shown = page.evaluate(
            "[document.querySelector('.player video').src, document.querySelector('.player video').videoWidth]"
        )
        assert shown == [f"{odd.address}api/v1/videos/{odd.ids[name]}/preview", 160]
