from __future__ import annotations

from collections.abc import Callable
from typing import Any

TOKEN = "a token nobody would guess"
EXPECTED = ("401", "429")


def enter(page: Any, token: str) -> None:
    page.get_by_label("Token", exact=True).fill(token)
    page.get_by_role("button", name="Log in").click()


def test_who_logs_out_sees_nothing_more_in_any_tab(guarded: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(guarded.address + "#library", expected=EXPECTED)
    assert page.get_by_role("button", name="Log out").count() == 0
    enter(page, TOKEN)
    page.wait_for_selector(".videos > li")
    other = page.context.new_page()
    other.goto(guarded.address + "#library")
    other.get_by_role("button", name="Log out").wait_for()
    cookie = page.context.cookies()[0]

    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Token", exact=True).wait_for()
    assert page.locator(".videos > li").count() == 0
    assert page.get_by_role("button", name="Log out").count() == 0
    other.get_by_label("Token", exact=True).wait_for()
    assert other.locator(".videos > li").count() == 0
    page.context.add_cookies([cookie])  # a copy of it is worth nothing
    assert page.evaluate("fetch('/api/v1/status').then((answer) => answer.status)") == 401

    enter(page, TOKEN)
    page.wait_for_selector(".videos > li")  # where one was
    page.get_by_role("button", name="Log out").wait_for()
    other.wait_for_selector(".videos > li")  # one need not say it in every tab


def test_who_is_wrong_too_often_is_told_to_wait(guarded: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(guarded.address, expected=EXPECTED)
    problem = page.locator("dialog .problem")
    for number in range(20):
        with page.expect_response("**/login") as answer:
            enter(page, f"wrong number {number}")
        page.wait_for_function("() => document.querySelector('dialog .problem').textContent !== ''")
        if answer.value.status == 429:
            break
        assert problem.inner_text().startswith("The token is wrong")
    assert answer.value.status == 429
    told = answer.value.json()["error"]["message"]
    assert problem.inner_text().lower() == told.lower()
    assert "try again in" in told
    assert page.evaluate("document.activeElement.id") == "token"


def test_nobody_logs_out_where_no_token_is_needed(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address)
    page.wait_for_selector("#q:focus")
    assert page.get_by_role("button", name="Log out").count() == 0
