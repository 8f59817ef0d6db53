"""An empty page: a folder is chosen in it, and the first question answered, without a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_from_an_empty_page_to_the_first_answer(
    serving: Callable[..., Any],
    open_page: Callable[..., Any],
    make_video: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    axe: str,
) -> None:
    home = tmp_path / "home"
    (home / "Harbour").mkdir(parents=True)
    film = make_video(home / "Harbour" / "harbour.mp4", [(4.0, (200, 30, 30))], rate=10, size=(160, 90))
    film.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:03,000\nThe lighthouse keeper waved.\n")
    monkeypatch.setenv("HOME", str(home))
    served = serving(tmp_path / "library")
    page = open_page(served.address, reduced_motion="reduce")
    page.get_by_text("Choose a folder of videos to start with").wait_for()
    if shots := os.environ.get("MOMENTSEEK_SCREENSHOTS"):
        Path(shots).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{shots}/first-run.png", full_page=True)
    if axe:
        page.evaluate(axe)
        assert page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"] == []
    page.get_by_role("button", name="Open home, 1 video").click()
    page.get_by_role("button", name="Add Harbour").click()
    page.get_by_text("1 video added").wait_for(timeout=180_000)
    page.get_by_text("Choose a folder of videos to start with").wait_for(state="hidden")
    page.get_by_label("Describe a moment").fill('"lighthouse keeper"')
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.hits .name >> text=harbour.mp4")
