"""With a thumb, on a narrow screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SEEN = """(element) => {
    const {top, bottom} = element.getBoundingClientRect();
    const {left, width} = element.getBoundingClientRect();
    const there = document.elementFromPoint(left + width / 2, (top + bottom) / 2);
    return top >= 0 && bottom <= innerHeight && (there === element || element.contains(there));
}"""


def test_the_keys_on_the_screen_make_room_for_results(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address, **PHONE)
    page.locator("#q").tap()
    page.keyboard.type("a rocket taking off")
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.hits > li")
    assert page.evaluate("document.activeElement.id") != "q"
    page.locator("a.moment").first.tap()
    page.locator(".stage:visible").wait_for()
    page.get_by_role("link", name="Back to the results").tap()
    page.wait_for_selector("ol.hits > li")


def test_the_views_are_in_one_row(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address, **PHONE)
    page.get_by_text("Lab", exact=True).wait_for()
    tops = page.locator("nav > a, nav summary").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect())")
    assert len(tops) == 4
    assert len({round(one["top"] + one["height"] / 2) for one in tops}) == 1
    assert page.locator("header").bounding_box()["height"] < 70


def test_the_film_stays_in_sight_while_one_reads_the_levels(judged: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(judged.address + "#judge", reduced_motion="reduce", **PHONE)
    page.get_by_label("Your name").fill("dora")
    page.get_by_label("New query").fill("a pair of shoes")
    page.get_by_label("Moments", exact=True).fill("5")
    page.get_by_role("button", name="Collect moments").tap()
    page.wait_for_selector(".judging:visible .level-button")
    worst = page.get_by_role("button", name="0 unrelated")
    for step in range(0, 600, 50):
        page.evaluate(f"document.querySelector('.judging').scrollIntoView(); scrollBy(0, {step})")
        if worst.evaluate(SEEN):
            break
    assert worst.evaluate(SEEN)
    assert page.locator(".judging video").evaluate(SEEN)


def test_a_tapped_level_looks_like_the_others_at_the_next_moment(judged: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(judged.address + "#judge", reduced_motion="reduce", **PHONE)
    page.get_by_label("Your name").fill("emil")
    page.get_by_label("New query").fill("somebody reading a book")
    page.get_by_label("Moments", exact=True).fill("5")
    page.get_by_role("button", name="Collect moments").tap()
    page.wait_for_selector(".judging:visible .level-button")
    with page.expect_response("**/next?*"):
        page.get_by_role("button", name="3 good").tap()
    page.locator(".judging", has_text="1 judged by you").wait_for()
    colours = page.locator(".level-button").evaluate_all("(all) => all.map((one) => getComputedStyle(one).borderColor)")
    assert len(set(colours)) == 1
