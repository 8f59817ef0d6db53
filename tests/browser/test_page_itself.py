from __future__ import annotations

from collections.abc import Callable
from typing import Any

HEAVIEST = 180_000


def test_the_page_is_light_and_asks_nobody_else(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address)
    page.wait_for_selector("#q:focus")  # every script has been loaded by now
    page.get_by_text("4 videos").wait_for()
    loaded = page.evaluate("""performance.getEntries()
        .filter((one) => one.decodedBodySize && !one.name.includes("/api/"))
        .map((one) => [one.name, one.decodedBodySize])""")
    assert all(url.startswith(served.address) for url, _ in loaded)
    scripts = [url for url, _ in loaded if url.endswith(".js")]
    assert len(scripts) == len(set(scripts))  # a module that is preloaded is not loaded again
    assert 50_000 < sum(size for _, size in loaded) < HEAVIEST


def test_no_markup_comes_from_queries(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address + "#q=" + "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    page.wait_for_function("() => document.querySelector('.summary').innerText !== ''")
    assert page.locator("main img[src=x]").count() == 0
    assert page.title().startswith("<img src=x")


def test_a_narrow_screen_needs_no_sideways_scrolling(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address, viewport={"width": 320, "height": 640})
    video = served.ids["lecture.mp4"]
    views = {
        "": "#q",
        "#q=a%20rocket": "ol.hits > li",
        f"#v={video}&t=13.5,22.5&q=a%20rocket": ".other",
        "#library": ".videos > li",
        "#judge": ".figures select",
        "#compare": ".settings",
    }
    for number, (fragment, sign) in enumerate(views.items()):
        if number:
            page.goto(f"{served.address}?{number}{fragment}")  # another address, so that the page is loaded anew
        page.wait_for_selector(sign)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, fragment
