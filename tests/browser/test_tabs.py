"""More tabs than a browser has connections to one host (six), while videos are being added."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TABS = 7


@pytest.mark.slow
def test_searching_works_in_every_tab_while_videos_are_added(
    demo: Path,
    serving: Callable[..., Any],
    open_page: Callable[..., Any],
    make_video: Callable[..., Path],
    tmp_path: Path,
) -> None:
    shutil.copytree(demo / "library", tmp_path / "library")
    more = tmp_path / "more"
    more.mkdir()
    noise = np.random.default_rng(7).integers(0, 255, (90, 160, 3), dtype=np.uint8)
    scenes = [(4.0, np.roll(noise, shift, axis=1)) for shift in range(150)]  # long work, which is stopped at the end
    make_video(more / "long.mp4", scenes, rate=5, size=(160, 90), options={"preset": "ultrafast"})
    server = serving(tmp_path / "library", "--folder", str(more))

    first = open_page(server.address + "#library", reduced_motion="reduce")
    tabs = [first, *(first.context.new_page() for _ in range(TABS - 1))]
    for tab in tabs[1:]:
        tab.set_default_timeout(30_000)
        tab.goto(server.address)
        tab.wait_for_selector("#q:focus")
    first.get_by_role("button", name="Add more").click()
    for tab in tabs:  # each hears of it, also those that began nothing
        tab.locator("#working", has_text="Adding 1 of 1").wait_for()
    for tab in tabs:
        tab.goto(server.address + "#q=a+rocket+taking+off")
        tab.wait_for_selector("ol.hits > li")
        tab.locator("#working", has_text="Adding 1 of 1").wait_for()
    for tab in tabs:
        asked = tab.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
        assert not [url for url in asked if url.endswith("/events")]  # the stream is the shared worker's

    tabs[3].get_by_role("link", name="Adding 1 of 1").click()
    tabs[3].get_by_role("button", name="Stop more").click()
    for tab in tabs:
        tab.locator("#working").wait_for(state="hidden")
