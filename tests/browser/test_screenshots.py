"""A picture of every view, for people to look at, if MOMENTSEEK_SCREENSHOTS names a folder for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCREENS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}


QUERY = "a motorcycle in a garage"


def test_screenshots(judged: Any, open_page: Callable[..., Any]) -> None:
    folder = os.environ.get("MOMENTSEEK_SCREENSHOTS")
    if not folder:
        pytest.skip("MOMENTSEEK_SCREENSHOTS names no folder")
    Path(folder).mkdir(parents=True, exist_ok=True)
    film = judged.ids["lecture.mp4"]

    def first() -> None:
        """What the later pictures show: a failure, and a query to judge."""
        page.get_by_role("link", name="Library", exact=True).click()
        page.get_by_role("button", name="Add more").click()
        page.wait_for_selector("section.panel > .failures li", timeout=30_000)
        page.get_by_role("link", name="Judge", exact=True).click()
        page.get_by_label("Your name").fill("ann")
        page.get_by_label("New query").fill(QUERY)
        page.get_by_role("button", name="Collect moments").click()
        page.wait_for_selector(".judging:visible .level-button")

    def judge() -> None:
        page.get_by_label("Your name").fill("ann")
        page.get_by_label("Your name").press("Tab")
        page.locator(".query", has_text=QUERY).click()
        page.wait_for_selector(".judging:visible .level-button")
        page.wait_for_function("() => document.querySelector('.judging video').readyState >= 2")

    def compare() -> None:
        page.get_by_label("For one query").fill("a rocket taking off")
        page.get_by_role("button", name="Compare", exact=True).click()
        page.wait_for_selector("a.moment")

    views: dict[str, tuple[str, str, Callable[[], None]]] = {
        "search": ("", "#q", lambda: page.get_by_text("How to ask").click()),
        "results": ("#q=will%20they%20accept%20the%20old%20money", "ol.hits mark", lambda: None),
        "player": (f"#v={film}&t=13.5,22.5&q=a%20rocket%20taking%20off", ".other", lambda: None),
        "library": ("#library", ".videos li", lambda: None),
        "judge": ("#judge", ".figures select", judge),
        "compare": ("#compare", ".settings", compare),
    }
    for screen, options in SCREENS.items():
        page = open_page(judged.address, reduced_motion="reduce", **options)
        page.wait_for_selector("#q")
        if screen == "desktop":
            first()
        for name, (fragment, sign, act) in views.items():
            page.goto("about:blank")
            page.goto(judged.address + fragment)
            page.wait_for_selector(sign)
            act()
            page.wait_for_function("""() => {
                const pictures = [...document.images];
                pictures.forEach((picture) => (picture.loading = "eager"));
                return pictures.every((picture) => picture.complete);
            }""")
            page.screenshot(path=Path(folder) / f"{name}-{screen}.png", full_page=True)
    assert len(list(Path(folder).glob("*.png"))) >= len(views) * len(SCREENS)
