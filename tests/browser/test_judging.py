from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

MOMENTS = 10
MEASURE = "NDCG@10[IoU>=0.5]"
PLACE = "(element) => element.getBoundingClientRect().top + scrollY"


def level(candidate: dict[str, Any]) -> int:
    """What everybody thinks of a moment, by where it is."""
    return int(candidate["video_id"] * 7 + candidate["start"] * 3) % 5


@pytest.fixture
def judging(judged: Any, open_page: Callable[..., Any]) -> Any:
    """A page in judge mode."""
    return open_page(judged.address + "#judge")


def begin(page: Any, annotator: str, query: str) -> dict[str, Any]:
    """Choose a query as somebody; the first moment."""
    name = page.get_by_label("Your name")
    asks = name.input_value() != annotator and page.locator(".query[aria-pressed='true']").count()
    name.fill(annotator)
    with page.expect_response("**/next?*") if asks else nullcontext():  # for the query that is open
        name.press("Tab")
    with page.expect_response("**/next?*") as answer:
        page.locator(".query", has_text=query).click()
    return shown(page, answer.value.json())


def shown(page: Any, task: dict[str, Any]) -> dict[str, Any]:
    """A task, when the page shows it."""
    id = task["candidate"]["id"] if task["candidate"] else ""
    page.wait_for_selector(f".judging[data-candidate='{id}']")
    return task


def agreed(page: Any, query: str) -> Any:
    """What the table of agreement says about a query."""
    return page.locator(".consensus tbody tr", has_text=query).locator("td")


def test_two_people_judge_and_the_commands_agree_with_the_page(
    judged: Any, open_page: Callable[..., Any], momentseek: Callable[..., Any], tmp_path: Path
) -> None:
    page = open_page(judged.address + "#judge", reduced_motion="reduce")  # to play each moment takes most of the time
    query = "a rocket taking off"
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "GET" else None)
    page.get_by_label("New query").fill(query)
    page.get_by_label("Moments", exact=True).fill(str(MOMENTS))
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("button", name="Collect moments").click()
    page.get_by_text(f"{MOMENTS} moments collected").wait_for()
    seen: dict[str, list[int]] = {}
    for who in ("ann", "bob"):
        task = begin(page, who, query)
        for _ in range(MOMENTS):
            candidate = task["candidate"]
            assert set(candidate) == {"id", "video_id", "start", "end", "media"}  # nothing that would tell
            seen.setdefault(who, []).append(candidate["id"])
            with page.expect_response("**/next?*") as answer:
                page.keyboard.press(str(level(candidate)))
            task = shown(page, answer.value.json())
        assert task["candidate"] is None or task["done"] == MOMENTS
    assert sorted(seen["ann"]) == sorted(seen["bob"])
    assert seen["ann"] != seen["bob"]  # each in an order of their own

    assert not [url for url in asked if "consensus" in url]  # what changed comes with the answers
    assert len([url for url in asked if url.endswith("/judging/queries")]) <= 2  # at the beginning, and a new one
    page.locator(".consensus tr", has_text=query).locator("td:text-is('10')").wait_for()
    assert agreed(page, query).all_inner_texts()[:2] == ["10", "0"]
    page.get_by_label("Measure").first.select_option(MEASURE)
    page.get_by_role("button", name="Evaluate").click()
    value = float(page.locator(".figure strong").get_attribute("data-value"))
    assert 0 < value <= 1
    assert page.locator(".figure strong").inner_text() == f"{value:.4f}"

    for button, name in (("Save as TVR-Ranking", "judgements.zip"), ("Save this run", "run.json")):
        with page.expect_download() as download:
            page.get_by_role("button", name=button).click()
        download.value.save_as(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "judgements.zip") as archive:
        archive.extract("truth.json", tmp_path)
    result = momentseek(
        "evaluate", tmp_path / "run.json", "--truth", tmp_path / "truth.json", "-m", MEASURE, "--json", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert values(json.loads(result.stdout)) == [pytest.approx(value, abs=1e-12)]

    with page.expect_response("**/judging/reliability*") as told:
        page.get_by_role("button", name="Check levels").click()
    page.locator("table", has_text="First hits: strong").wait_for()
    strong = told.value.json()["every"][0]
    label = page.locator("svg.reliability").nth(1).get_attribute("aria-label")
    assert f"strong: {strong['right']} of {strong['judged']}" in label

    page.get_by_role("button", name="Compare localisers").click()
    page.wait_for_selector("table >> text=watershed")
    page.get_by_role("link", name="Change them in Search").click()
    page.get_by_text("Options").click()
    page.locator(".options").get_by_text("Advanced").click()
    page.get_by_label("Localiser", exact=True).select_option("whole")
    page.get_by_role("checkbox", name="file names").uncheck()
    page.get_by_label("Fusion").select_option("scores")
    page.wait_for_function("() => location.hash.includes('fusion=scores')")
    page.get_by_text("Lab", exact=True).click()
    page.get_by_role("link", name="Judge", exact=True).click()
    words = "localiser whole, fusion scores, encoder things; searching what is seen, what is said, what is written, "
    words += "and descriptions by a model"
    page.locator(".setup", has_text=words).wait_for()
    with page.expect_response("**/judging/evaluation?*") as answer:
        page.get_by_role("button", name="Evaluate").click()
    assert answer.value.json()["settings"] == "localiser=whole;streams=vision,speech,text,described;fusion=scores"
    page.locator(".result", has_text=words).wait_for()
    assert float(page.locator(".judge .figure strong").get_attribute("data-value")) != value

    page.get_by_text("Lab", exact=True).click()
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_role("button", name="Compare on judged queries").click()
    page.locator(".compare .figure").wait_for()
    assert "chance" in page.locator(".compare .figure").inner_text() or "No difference" in page.content()


def values(found: Any) -> list[float]:
    """Every number called by the measure's name."""
    if isinstance(found, dict):
        own = [found[MEASURE]] if isinstance(found.get(MEASURE), float) else []
        return own + [value for part in found.values() for value in values(part)]
    return [value for part in found for value in values(part)] if isinstance(found, list) else []


def test_a_query_can_be_added_before_the_others_are_known(judged: Any, open_page: Callable[..., Any]) -> None:
    asked: list[Any] = []

    def hold(page: Any) -> None:
        page.route("**/judging/queries", lambda route: asked.append(route) if not asked else route.continue_())

    page = open_page(judged.address + "#judge", prepare=hold)
    button = page.get_by_role("button", name="Collect moments")
    button.wait_for()
    before = button.evaluate(PLACE)
    page.get_by_label("New query").fill("a slow server")
    page.get_by_label("Moments", exact=True).fill("1")
    page.get_by_label("Your name").fill("ann")  # which is taken when the button is pressed
    with page.expect_response(lambda answer: answer.request.method == "POST") as created:
        button.click()
    assert page.get_by_text("No queries yet").count() == 0  # which nobody knows
    assert button.evaluate(PLACE) == before
    assert created.value.status == 201
    page.locator(".query", has_text="a slow server").wait_for()
    asked[0].fulfill(json={"queries": []})  # what was known before
    page.wait_for_selector(".judging[data-candidate]")
    assert page.locator(".query", has_text="a slow server").count() == 1
    page.request.delete(f"{judged.address}/api/v1/judging/queries/{created.value.json()['id']}")


def test_a_rule_that_was_chosen_stays_when_an_older_answer_comes(judged: Any, open_page: Callable[..., Any]) -> None:
    held: dict[str, Any] = {}

    def hold(page: Any) -> None:
        page.route(
            "**/judging/rule",
            lambda route: (
                route.continue_() if route.request.method in held else held.update({route.request.method: route})
            ),
        )

    page = open_page(judged.address + "#judge", prepare=hold)
    before = page.request.get(f"{judged.address}api/v1/judging/rule").json()
    chosen = page.get_by_label("Two: TVR-Ranking")
    chosen.check()
    assert set(held) == {"GET", "PUT"}
    with page.expect_response("**/judging/rule"):
        held["GET"].fulfill(json=before | {"setting": "auto"})
    page.evaluate("() => new Promise((done) => setTimeout(done, 100))")
    assert chosen.is_checked()
    with page.expect_response(lambda answer: answer.request.method == "GET" and answer.url.endswith("/queries")):
        held["PUT"].continue_()
    assert chosen.is_checked()
    page.request.put(f"{judged.address}api/v1/judging/rule", data={"setting": before["setting"]})


def test_disagreement_asks_for_more_people_and_undo_takes_back(judging: Any) -> None:
    page = judging
    page.get_by_label("Two: TVR-Ranking").check()
    page.get_by_label("New query").fill("a cat on a chair")
    page.get_by_label("Moments", exact=True).fill("1")
    page.get_by_role("button", name="Collect moments").click()
    page.get_by_text("Enter your name first").wait_for()
    for who, says in (("ann", "4"), ("bob", "0")):
        begin(page, who, "a cat on a chair")
        page.keyboard.press(says)
        page.locator(".judging .empty", has_text="Nothing is left for you").wait_for()
    begin(page, "cleo", "a cat on a chair")
    page.get_by_role("button", name="Skip", exact=True).click()
    page.locator(".judging .empty", has_text="Only moments that you skipped").wait_for()
    begin(page, "bob", "a cat on a chair")
    row = page.locator(".consensus tr", has_text="a cat on a chair")
    row.get_by_text("1 moment, 1 disputed").wait_for()
    page.keyboard.press("u")
    row.get_by_text("1 moment", exact=True).wait_for()
    page.get_by_role("button", name="3 good").click()
    row.locator("td:text-is('1')").wait_for()
    assert agreed(page, "a cat on a chair").nth(0).inner_text() == "1"
