"""More tabs than a browser has connections to one host (six), while videos are being added."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TABS = 7


@pytest.mark.slow
def test_searching_works_in_every_tab_while_videos_are_added(
    light_serving: Callable[..., Any],
    open_page: Callable[..., Any],
    make_video: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    film = make_video(tmp_path / "harbour.mp4", [(4.0, (200, 30, 30))], rate=5, size=(64, 48))
    film.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:03,000\nThe lighthouse keeper waved.\n")
    more = tmp_path / "more"
    more.mkdir()
    make_video(more / "long.mp4", [(1200.0, (30, 30, 200))], rate=1, size=(64, 48), options={"preset": "ultrafast"})
    monkeypatch.setenv("LIGHT_SLOW", "0.3")  # long work that takes no processor, and is stopped at the end
    server = light_serving(film, tmp_path / "library", "--folder", str(more))

    first = open_page(server.address + "#library", reduced_motion="reduce")
    tabs = [first, *(first.context.new_page() for _ in range(TABS - 1))]
    for tab in tabs[1:]:
        tab.set_default_timeout(120_000)
        tab.goto(server.address)
        tab.wait_for_selector("#q:focus")
    first.get_by_role("button", name="Add more").click()
    for tab in tabs:  # each hears of it, also those that began nothing
        tab.locator("#working", has_text="Adding 1 of 1").wait_for()
    for tab in tabs:
        tab.goto(server.address + "#q=lighthouse+keeper")
        tab.wait_for_selector("ol.hits > li")
        tab.locator("#working", has_text="Adding 1 of 1").wait_for()
    for tab in tabs:
        asked = tab.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
        assert not [url for url in asked if url.endswith("/events")]  # the stream is the shared worker's

    tabs[3].get_by_role("link", name="Adding 1 of 1").click()
    tabs[3].get_by_role("button", name="Stop more").click()
    for tab in tabs:
        tab.locator("#working").wait_for(state="hidden")
