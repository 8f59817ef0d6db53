from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit


def test_two_settings_stand_side_by_side(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address + "#compare", expected=("409",))
    second = page.get_by_role("group", name="B", exact=True)
    second.get_by_label("Localiser", exact=True).select_option("whole")
    page.get_by_label("For one query").fill("a rocket taking off")
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Setup B").locator("a.moment").first.wait_for()
    lengths = {
        side: page.get_by_role("region", name=f"Setup {side}").locator(".long").first.inner_text() for side in "AB"
    }
    assert lengths["B"] == "29.0 s"
    assert lengths["A"] != "29.0 s"
    page.get_by_role("button", name="Compare on judged queries").click()
    page.get_by_text("judge some first").wait_for()


def test_a_moment_leads_back_to_where_it_was_opened(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address + "#compare")
    page.get_by_label("For one query").fill("a rocket taking off")
    page.keyboard.press("Enter")
    moment = page.get_by_role("region", name="Setup B").locator("a.moment").nth(2)
    moment.click()
    page.get_by_role("link", name="Back to the comparison").click()
    page.wait_for_function("() => document.activeElement.matches('section[aria-label=\"Setup B\"] a.moment')")
    page.get_by_role("link", name="Library", exact=True).click()
    page.locator("a.video").nth(1).click()
    page.locator(".stage:visible").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement === document.querySelectorAll('a.video')[1]")


def test_fusions_are_compared_starting_from_the_search_at_hand(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address + "#q=will+they+accept+the+old+money&localiser=contrast&streams=vision,speech")
    page.wait_for_selector("ol.hits > li")
    page.get_by_text("Lab", exact=True).click()
    page.get_by_role("link", name="Compare", exact=True).click()
    first, second = (page.get_by_role("group", name=name, exact=True) for name in "AB")
    first.get_by_label("Localiser", exact=True).wait_for()
    assert page.get_by_label("For one query").input_value() == "will they accept the old money"
    assert first.get_by_label("Localiser", exact=True).input_value() == "contrast"
    assert not first.get_by_label("file names").is_checked()
    assert page.get_by_label("Encoder").count() == 0  # there is one encoder
    second.get_by_label("Localiser", exact=True).select_option("contrast")
    second.get_by_label("Fusion").select_option("scores")
    with page.expect_response("**/api/v1/compare?*") as answer:
        page.get_by_role("button", name="Compare", exact=True).click()
    told = answer.value.json()
    assert told["a"]["settings"] == "localiser=contrast;streams=vision,speech"
    assert told["b"]["settings"] == "localiser=contrast;streams=vision,speech;fusion=scores"


def test_encoders_are_offered_if_there_are_several(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address)

    def status(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "encoders": ["things", "hub:siglip2-base"]})

    def compare(route: Any) -> None:
        """As if the other encoder saw the same."""
        route.fulfill(response=route.fetch(url=route.request.url.replace("hub%3Asiglip2-base", "things")))

    page.route("**/api/v1/status", status)
    page.route("**/api/v1/compare?*", compare)
    page.goto(served.address + "#q=a+rocket")
    page.reload()
    page.wait_for_selector("ol.hits > li")
    page.get_by_text("Options").click()
    assert page.get_by_label("Encoder").count() == 0  # a library is searched with its own
    page.get_by_text("Lab", exact=True).click()
    page.get_by_role("link", name="Compare", exact=True).click()
    second = page.get_by_role("group", name="B", exact=True)
    second.get_by_label("Encoder").select_option("hub:siglip2-base")
    with page.expect_request("**/api/v1/compare?*") as asked:
        page.get_by_role("button", name="Compare", exact=True).click()
    given = parse_qs(urlsplit(asked.value.url).query)
    assert "encoder=things" in given["a"][0].split(";")
    assert "encoder=hub:siglip2-base" in given["b"][0].split(";")
    page.get_by_role("region", name="Setup B").locator("a.moment").first.wait_for()
