"""Everything without a pointer: only keys are pressed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

FRAME = 1 / 20


def tab_to(page: Any, selector: str, most: int = 60) -> None:
    """Press Tab until an element has the focus, as somebody without a mouse does."""
    for _ in range(most):
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"{selector} cannot be reached with Tab")


def edge(page: Any, which: str) -> float:
    return float(page.locator(f"[data-edge={which}]").get_attribute("aria-valuenow"))


def test_search_watch_fix_and_cut_by_keyboard(
    served: Any, open_page: Callable[..., Any], settled: Callable[[Any], float], tmp_path: Any
) -> None:
    from momentseek.media.probe import probe

    page = open_page(served.address, reduced_motion="reduce")
    page.wait_for_function("() => document.activeElement.id === 'q'")  # the box is ready for typing
    page.keyboard.type("a rocket taking off")
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.hits > li")
    tab_to(page, "a.moment")
    tab_to(page, ".after button")
    page.keyboard.press("Enter")  # shows weaker results, and goes to the first of them
    page.wait_for_function("() => document.activeElement === document.querySelectorAll('a.moment')[1]")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement === document.querySelectorAll('a.moment')[2]")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    settled(page)
    assert page.evaluate("document.activeElement.tagName") == "H1"

    page.keyboard.press("Space")
    page.wait_for_function("() => !document.querySelector('.player video').paused")
    page.keyboard.press("Space")
    page.wait_for_function("() => document.querySelector('.player video').paused")

    start, end = edge(page, "start"), edge(page, "end")
    tab_to(page, "[data-edge=start]")
    page.keyboard.press("ArrowRight")
    assert edge(page, "start") == pytest.approx(start + FRAME, abs=1e-3)
    page.keyboard.press("Shift+ArrowRight")
    assert edge(page, "start") == pytest.approx(start + FRAME + 1, abs=1e-3)
    page.keyboard.press("Home")
    assert edge(page, "start") == 0
    page.keyboard.press("PageUp")
    snapped = edge(page, "start")
    assert 0 < snapped < end
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.edge") == "end"
    page.keyboard.press("Shift+ArrowLeft")
    assert edge(page, "end") == pytest.approx(end - 1, abs=1e-3)
    assert "seconds" in page.locator("[data-edge=end]").get_attribute("aria-valuetext")

    tab_to(page, ".exports button")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    download.value.save_as(tmp_path / "clip.mp4")
    assert probe(tmp_path / "clip.mp4").duration == pytest.approx(end - 1 - snapped, abs=FRAME + 1e-3)

    page.keyboard.press("Escape")
    page.wait_for_selector("ol.hits > li")
    assert page.evaluate("document.activeElement === document.querySelector('a.moment')")  # where one came from
    page.keyboard.press("/")
    page.wait_for_function("() => document.activeElement.id === 'q'")


def test_every_view_can_be_reached(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address)
    page.wait_for_function("() => document.activeElement.id === 'q'")
    for _ in range(8):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.id") == "skip":
            break
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for name in ("library", "judge", "compare"):
        page.keyboard.press("Shift+Tab")
        for _ in range(6):
            here = page.evaluate("document.activeElement.dataset.view ?? document.activeElement.textContent")
            if here == "Lab" and name != "library":  # a menu: the view is in it
                page.keyboard.press("Enter")
                page.keyboard.press("Tab")
                if name == "compare":
                    page.keyboard.press("Tab")
                break
            if here == name:
                break
            page.keyboard.press("Shift+Tab")
        page.keyboard.press("Enter")
        page.wait_for_function(f"() => document.title.toLowerCase().startsWith('{name}')")
        assert page.evaluate("document.activeElement.innerText").lower() == name
