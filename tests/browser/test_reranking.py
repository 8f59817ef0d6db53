"""Choosing a model that looks again; the server's answers are played, as if it had been given two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

LABEL = "Re-ranking model"


@pytest.fixture
def given(served: Any, open_page: Callable[..., Any]) -> Callable[..., Any]:
    """``given(fragment, names)``: the page of a server that was given models of these names."""

    def run(fragment: str, names: list[str]) -> Any:
        page = open_page(served.address)

        def status(route: Any) -> None:
            answer = route.fetch()
            route.fulfill(response=answer, json={**answer.json(), "rerankers": names})

        def search(route: Any) -> None:
            """As if the model found the same."""
            route.fulfill(response=route.fetch(url=route.request.url.replace("&rerank=nothing", "")))

        page.route("**/api/v1/status", status)
        page.route("**/api/v1/search?*", search)
        page.goto(served.address + fragment)
        page.reload()
        page.wait_for_selector("ol.hits > li")
        return page

    return run


def test_a_model_is_chosen_by_a_label_and_kept_in_the_address(given: Callable[..., Any]) -> None:
    page = given("#q=a+rocket", ["films-tan2d", "nothing"])
    page.get_by_text("Options").click()
    page.locator(".options").get_by_text("Advanced").click()
    choice = page.get_by_label(LABEL)
    assert choice.locator("option").all_inner_texts() == ["none (default)", "films-tan2d", "nothing"]
    assert choice.input_value() == ""
    with page.expect_request("**/api/v1/search?*") as asked:
        choice.select_option("nothing")  # which somebody may call a folder
    assert parse_qs(urlsplit(asked.value.url).query)["rerank"] == ["nothing"]
    page.wait_for_function("() => location.hash.endsWith('rerank=nothing')")
    page.reload()
    page.wait_for_selector("ol.hits > li")
    assert page.get_by_label(LABEL).input_value() == "nothing"

    # a moment's link keeps it, the curve does without, and the way back leads to the same search
    link = page.locator("a.moment").first
    assert link.get_attribute("href").endswith("&rerank=nothing")
    with page.expect_response("**/curve?*") as curve:
        link.click()
    assert curve.value.ok
    assert "rerank" not in curve.value.url
    page.get_by_role("link", name="Back to the results").click()
    page.wait_for_function("() => location.hash.endsWith('rerank=nothing')")

    # what is measured is not re-ranked, and says so
    page.get_by_text("Lab", exact=True).click()
    page.get_by_role("link", name="Judge", exact=True).click()
    words = page.locator(".figures .setup")
    page.wait_for_function("() => document.querySelector('.figures .setup')?.textContent")
    assert words.inner_text().endswith("; without re-ranking")
    assert "re-ranked" not in words.inner_text()


def test_without_models_there_is_no_choice(given: Callable[..., Any]) -> None:
    page = given("#q=a+rocket&rerank=films-tan2d", [])
    page.get_by_text("Options").click()
    page.locator(".options").get_by_text("Advanced").click()
    page.get_by_label("Localiser", exact=True).wait_for()
    assert page.get_by_label(LABEL).count() == 0
