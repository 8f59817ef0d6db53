from __future__ import annotations

import shutil
import wave
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
        held: list[Any] = []

        def hold_first(page: Any, held: list[Any] = held) -> None:
            page.route("**/preview", lambda route: route.continue_() if held else held.append(route))

        address = f"{odd.address}#v={odd.ids[name]}&t=2.5,3.5"
        page = open_page(address, reduced_motion="reduce", prepare=hold_first)
        page.wait_for_selector(".player .problem:has-text('Making a preview')")
        while not held:
            page.wait_for_timeout(20)
        held[0].continue_()
        page.wait_for_function("() => document.querySelector('.player video').src.endsWith('/preview')")
        assert settled(page) == pytest.approx(2.5, abs=0.05)
        assert page.locator(".player .stage .problem").is_hidden()
        shown = page.evaluate(
            "[document.querySelector('.player video').src, document.querySelector('.player video').videoWidth]"
        )
        assert shown == [f"{odd.address}api/v1/videos/{odd.ids[name]}/preview", 160]


def test_a_recording_of_sound_is_played_as_it_is(
    light_serving: Callable[..., Any], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    with wave.open(str(tmp_path / "talk.wav"), "wb") as written:
        written.setparams((1, 2, 8000, 0, "NONE", ""))
        written.writeframes(b"\1\2" * 8000 * 8)
    (tmp_path / "talk.srt").write_text("1\n00:00:02,000 --> 00:00:05,000\nWater the tomatoes.\n")
    served = light_serving(tmp_path / "talk.wav", tmp_path / "library")
    page = open_page(served.address + "#q=said:tomatoes", reduced_motion="reduce")
    page.wait_for_function("() => document.querySelector('a.moment img')?.naturalWidth > 0")
    page.locator("a.moment").click()
    page.wait_for_function("() => document.querySelector('.player video')?.readyState >= 2")
    assert page.evaluate("document.querySelector('.player video').currentTime") == pytest.approx(2.0, abs=0.05)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("() => document.querySelector('.player video').currentTime > 2.3")
    assert page.locator(".player .stage .problem").is_hidden()
    page.goto(served.address + "#library")
    page.get_by_text("sound only").wait_for()
