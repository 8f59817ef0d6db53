from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_a_video_is_added_while_somebody_searches(guarded: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(guarded.address + "#library", expected=("401",))
    page.get_by_label("Token", exact=True).fill("a wrong one, surely")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("The token is wrong").wait_for()
    page.get_by_label("Token", exact=True).fill("a token nobody would guess")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Open more, 2 videos").click()
    page.get_by_role("button", name="Add this folder").click()
    page.get_by_role("link", name="Search", exact=True).click()
    for query in ("a cat", "a rocket taking off", "coffee"):
        page.locator("#q").fill(query)
        page.keyboard.press("Enter")
        page.wait_for_function(f"() => document.title.startsWith('{query}')")
        page.wait_for_selector("ol.hits > li")
    page.get_by_text("1 video added").wait_for(timeout=180_000)
    page.locator("#q").fill('"lighthouse keeper"')
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.hits .name >> text=harbour.mp4")

    page.get_by_role("link", name="Library", exact=True).click()
    page.wait_for_selector(".videos >> text=harbour.mp4")
    assert page.locator(".videos > li").count() == 5
    failure = page.locator("section.panel > .failures li")
    assert failure.locator("strong").inner_text() == "broken.mp4"
    assert len(failure.locator("span").first.inner_text()) > 10
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".job >> text=Retrying failed files")
    page.wait_for_function("() => document.querySelectorAll('.job progress:not([hidden])').length === 0")
    page.wait_for_function("() => document.querySelector('section.panel > .failures').innerText.includes('2 attempts')")
    page.get_by_label("Filter by name").fill("harb")
    page.wait_for_function("() => document.querySelectorAll('.videos > li').length === 1")
