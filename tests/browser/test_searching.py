from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_hits_are_ranked_and_weak_ones_are_shown_on_request(search: Callable[..., Any]) -> None:
    page = search("will they accept the old money")
    first = page.locator("ol.hits > li").first
    assert first.locator(".name").inner_text() == "1 trip.mp4"
    assert "0:25.1" in first.locator(".when").inner_text()
    assert first.locator(".level").inner_text() in ("Strong match", "Fair match")
    assert "I only have the old money left, will they take it?" in first.locator(".said").inner_text()
    assert {"old", "money"} <= set(first.locator(".said mark").all_inner_texts())
    ranks = [int(text) for text in page.locator("ol.hits .rank").all_inner_texts()]
    assert ranks == list(range(1, len(ranks) + 1))
    page.wait_for_function("() => document.querySelector('ol.hits img').naturalWidth > 0")

    page.get_by_label("Describe a moment").fill("a cat looking at the camera")
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.hits .name >> text=sunday.mp4")
    page.wait_for_function("() => !document.querySelector('.search[aria-busy]')")
    shown = page.locator("ol.hits > li").count()
    button = page.get_by_role("button", name="weaker results")
    hidden = int(button.inner_text().split()[1])
    assert page.locator("ol.hits .level.weak").count() == 0
    button.click()
    page.wait_for_function(f"() => document.querySelectorAll('ol.hits > li').length === {shown + hidden}")
    assert page.locator("ol.hits .level.weak").count() == hidden
    assert page.evaluate(f"document.activeElement === document.querySelectorAll('a.moment')[{shown}]")


def test_pointing_at_a_picture_plays_its_moment_silently(search: Callable[..., Any]) -> None:
    page = search("a rocket taking off")
    card = page.locator("a.moment").first
    start = float(card.get_attribute("href").split("t=")[1].split(",")[0])
    card.hover()
    page.wait_for_selector("a.moment video.on", state="attached")
    page.wait_for_function("() => document.querySelector('a.moment video').currentTime > 0.2")
    time, muted, paused = page.evaluate(
        "(v => [v.currentTime, v.muted, v.paused])(document.querySelector('a.moment video'))"
    )
    assert start <= time < start + 5
    assert muted
    assert not paused
    page.mouse.move(5, 5)
    page.wait_for_selector("a.moment video", state="detached")


def test_little_movement_means_that_nothing_plays_by_itself(search: Callable[..., Any]) -> None:
    page = search("a rocket taking off", reduced_motion="reduce")
    page.locator("a.moment").first.hover()
    page.wait_for_timeout(600)
    assert page.locator("a.moment video").count() == 0


def test_queries_are_remembered_and_hints_are_given(search: Callable[..., Any]) -> None:
    page = search("said:money")
    assert page.locator("#hint").inner_text().startswith("said:dog")
    page.get_by_role("link", name="Momentseek, new search").click()
    past = page.get_by_role("link", name="said:money")
    past.wait_for()
    past.click()
    page.wait_for_selector("ol.hits > li")
    assert page.locator("#q").input_value() == "said:money"
    page.get_by_role("link", name="Momentseek, new search").click()
    page.get_by_role("button", name="Clear history").click()
    assert page.locator(".chips a").count() == 0
    page.locator("#q").fill("")
    page.get_by_text("Search tips").click()
    page.get_by_role("button", name="-leash").click()
    assert page.locator("#q").input_value() == "-leash"


def test_settings_are_part_of_the_address(search: Callable[..., Any]) -> None:
    page = search("a rocket taking off")
    page.get_by_text("Options").click()
    page.locator(".options").get_by_text("Advanced").click()
    page.get_by_label("Localiser", exact=True).select_option("contrast")
    page.get_by_role("checkbox", name="what is said").uncheck()
    page.wait_for_function(
        "() => location.hash.includes('streams=vision%2Ctext%2Cdescribed%2Cname') && location.hash.includes('contrast')"
    )
    page.wait_for_selector("ol.hits > li")
    page.reload()
    page.wait_for_selector("ol.hits > li")
    assert page.get_by_label("Localiser", exact=True).input_value() == "contrast"
    assert not page.get_by_role("checkbox", name="what is said").is_checked()


def test_a_query_that_makes_no_sense_is_answered_with_a_sentence(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address + "#q=after:never", expected=("400",))
    problem = page.locator(".summary .problem")
    problem.wait_for()
    assert "never" in problem.inner_text()


def test_error_is_shown_once_and_stays_in_its_view(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(f"{served.address}#q={'x' * 2001}", expected=("422",))
    problem = page.locator(".summary .problem")
    problem.wait_for()
    assert problem.inner_text() == "The query is longer than 2,000 characters; shorten it; see /api/v1/docs"
    assert page.get_by_text("shorten it").count() == 1
    page.locator("#picture").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": b"no picture"})
    page.locator("#urgent p").wait_for()
    page.get_by_role("link", name="Library", exact=True).click()
    page.locator(".videos li").first.wait_for()
    assert page.locator("#urgent p").count() == 0


def test_an_answer_without_a_sure_hit_says_so_once(search: Callable[..., Any], served: Any, open_page: Any) -> None:
    page = open_page(served.address + "#q=zebra%20crossing%20at%20night&streams=speech")
    page.locator(".summary span").first.wait_for()
    said = page.locator(".summary").inner_text().lower()
    assert said.count("match") <= 1, said


def test_quotes_stand_one_below_the_other_and_tall_pictures_are_whole(
    light_serving: Callable[..., Any], open_page: Callable[..., Any], make_video: Callable[..., Path], tmp_path: Path
) -> None:
    film = make_video(tmp_path / "tall.mp4", [(6.0, (200, 30, 30))], rate=10, size=(90, 160))
    lines = [f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\nThe keeper waved {n} times.\n" for n in (1, 2, 3)]
    (tmp_path / "tall.srt").write_text("\n".join(lines))
    served = light_serving(film, tmp_path / "library")
    page = open_page(served.address + "#q=red%20said:keeper", reduced_motion="reduce")
    page.wait_for_selector(".said p")
    boxes = [one.bounding_box() for one in page.locator("ol.hits > li").first.locator(".said p").all()]
    assert len({box["x"] for box in boxes}) == 1
    assert [box["y"] for box in boxes] == sorted({box["y"] for box in boxes})
    assert page.locator("a.moment img").first.evaluate("(one) => getComputedStyle(one).objectFit") == "contain"
    assert "seen #" in page.locator(".why").first.inner_text()  # as the command line says it


def test_the_controls_follow_the_address(search: Callable[..., Any]) -> None:
    page = search("a rocket taking off")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/v1/search?" in request.url else None)
    usual = page.get_by_label("Localiser", exact=True).input_value()
    for settings, bounds, joined, said, grouped in (
        ("&localiser=contrast&streams=vision&group=video", "contrast", "rrf", False, True),
        ("", usual, "rrf", True, False),
        ("&streams=speech,name&fusion=scores", usual, "scores", True, False),
        ("&localiser=nothing-known&streams=nor-this&fusion=neither", usual, "rrf", True, False),
    ):
        before = len(asked)
        page.evaluate("(text) => { location.hash = `q=a+rocket+taking+off${text}`; }", settings)
        page.wait_for_function("() => !document.querySelector('.search[aria-busy]')")
        page.wait_for_timeout(300)
        assert page.get_by_label("Localiser", exact=True).input_value() == bounds, settings
        assert page.get_by_label("Fusion").input_value() == joined, settings
        assert page.locator(".options input[value=speech]").is_checked() is said, settings
        assert page.locator(".options > label.check input").is_checked() is grouped, settings
        assert len(asked) == before + 1, settings
    page.go_back()
    page.wait_for_function("() => !document.querySelector('.options input[value=vision]').checked")


def test_more_is_offered_only_as_far_as_the_server_goes(search: Callable[..., Any]) -> None:
    page = search("a rocket taking off")

    def endless(route: Any) -> None:
        answer = route.fetch(url=route.request.url.split("&offset")[0]).json()
        route.fulfill(json={**answer, "hits": (answer["hits"] * 300)[:260], "hidden": 0, "more": True})

    page.route("**/api/v1/search?*", endless)
    page.evaluate("location.hash = 'q=a+rocket'")
    page.wait_for_function("() => document.querySelectorAll('ol.hits > li').length === 260")
    page.get_by_role("button", name="More moments").click()
    page.wait_for_function("() => document.querySelectorAll('ol.hits > li').length === 520")
    assert page.get_by_role("button", name="More moments").count() == 0


def test_settings_chosen_before_a_query_stay_when_one_looks_elsewhere(
    served: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(served.address)
    page.get_by_text("Options").click()
    page.locator(".options").get_by_text("Advanced").click()
    page.get_by_label("Fusion").select_option("scores")
    page.get_by_role("link", name="Library", exact=True).click()
    page.wait_for_selector(".videos > li")
    page.get_by_role("link", name="Search", exact=True).click()
    page.wait_for_function("() => document.activeElement.id === 'q'")
    assert page.get_by_label("Fusion").input_value() == "scores"
    with page.expect_request("**/api/v1/search?*") as asked:
        page.keyboard.type("a rocket")
        page.keyboard.press("Enter")
    assert "fusion=scores" in asked.value.url
    page.wait_for_selector("ol.hits > li")
    page.get_by_text("Lab", exact=True).click()
    page.get_by_role("link", name="Judge", exact=True).click()
    page.get_by_role("link", name="Search", exact=True).click()
    page.wait_for_selector("ol.hits > li")  # as it was left
    page.get_by_role("link", name="Search", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('ol.hits > li').length === 0")  # and once more: anew


def test_export_menu_closes_on_escape_click_or_focus_elsewhere(search: Callable[..., Any]) -> None:
    page = search("a rocket taking off")
    menu = page.locator("main details.menu")
    for leave in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.mouse.click(5, 400),
        lambda: page.locator("a.moment").first.focus(),
    ):
        page.get_by_text("Export results").click()
        page.get_by_role("link", name="Table (CSV)").focus()
        leave()
        page.wait_for_function("() => !document.querySelector('main details.menu').open")
    page.get_by_text("Export results").click()
    page.keyboard.press("Escape")
    assert menu.evaluate("(menu) => document.activeElement === menu.firstElementChild")
    page.get_by_text("Export results").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Table (CSV)").click()
    assert download.value.suggested_filename == "a rocket taking off.csv"
    assert "lecture.mp4" in download.value.path().read_text()
