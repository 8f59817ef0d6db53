from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_two_settings_stand_side_by_side(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address + "#compare", expected=("409",))
    second = page.get_by_role("group", name="B", exact=True)
    second.get_by_label("Bounds found by").select_option("whole")
    page.get_by_label("For one query").fill("a rocket taking off")
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Setting B").locator("a.moment").first.wait_for()
    lengths = {
        side: page.get_by_role("region", name=f"Setting {side}").locator(".long").first.inner_text() for side in "AB"
    }
    assert lengths["B"] == "29.0 s"
    assert lengths["A"] != "29.0 s"
    page.get_by_role("button", name="Compare on the judgements").click()
    page.get_by_text("judge some first").wait_for()
