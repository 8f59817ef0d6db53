"""What people look for beside searching: more like this, keeping, removing, another encoder; all in one visit."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from momentseek.server.jobs import JobOut

SHOTS = os.environ.get("MOMENTSEEK_SCREENSHOTS")


def picture_of(page: Any, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


def test_a_visit_that_keeps_finds_and_removes(
    demo: Path, serving: Callable[..., Any], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    shutil.copytree(demo / "library", tmp_path / "library")
    served = serving(tmp_path / "library")
    page = open_page(served.address + "#q=a%20rocket%20taking%20off", reduced_motion="reduce")
    page.wait_for_selector("ol.hits > li")
    assert "Guessed from similar words: “taking”, “off”" in page.locator(".summary").inner_text()
    first = page.locator("ol.hits > li").first
    moment = first.locator("a.moment").get_attribute("href").split("&q=")[0]
    first.get_by_role("button", name="Keep").click()
    first.get_by_role("button", name="Kept").wait_for()
    page.get_by_role("button", name="Save search").click()
    page.get_by_text("Search saved. You can find it under Saved.").wait_for()
    picture_of(page, "search-tools")

    first.get_by_role("link", name="More like").click()
    page.get_by_text("More like this: ").wait_for()
    page.wait_for_function("() => !document.querySelector('.search[aria-busy]')")
    if not page.locator("ol.hits > li").count():  # none is sure
        page.get_by_role("button", name="weaker result").click()
    page.wait_for_selector("ol.hits > li")
    assert moment not in [link.get_attribute("href") for link in page.locator("ol.hits a.moment").all()]
    picture_of(page, "more-like-this")

    out = io.BytesIO()
    Image.new("RGB", (2000, 900), (250, 250, 250)).save(out, "PNG")
    page.locator("#picture").set_input_files({"name": "cup.png", "mimeType": "image/png", "buffer": out.getvalue()})
    page.get_by_text("Like cup.png: ").wait_for()

    page.get_by_role("link", name="Saved", exact=True).click()
    page.locator(".saved a.moment").wait_for()
    assert page.locator(".saved a.moment").get_attribute("href").startswith(moment)
    assert page.locator(".saved-searches a").inner_text() == "a rocket taking off"
    picture_of(page, "saved")
    note = page.locator(".saved .told")
    note.get_by_text("Note and tags").click()
    note.get_by_label("Note on").fill("for the opening")
    note.get_by_label("Tags of").fill("opening, rockets")
    note.get_by_role("button", name="Save").click()
    page.locator(".told p", has_text="for the opening").wait_for()
    page.get_by_role("button", name="rockets", exact=True).click()
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Edit list (EDL)").click()
    assert "* COMMENT: for the opening" in Path(saved.value.path()).read_text()
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Everything (JSON)").click()
    kept = json.loads(Path(saved.value.path()).read_bytes())
    assert (kept["person"], len(kept["favourites"]), len(kept["searches"])) == ("me", 1, 1)
    page.locator(".saved .hit").get_by_role("button", name="Remove").click()
    page.locator(".saved .none").wait_for()

    page.get_by_role("link", name="Library", exact=True).click()
    page.locator(".videos li").first.wait_for()
    # A picture that is still on its way when its video is removed is not found.
    page.wait_for_function("() => document.querySelector('.videos li img')?.naturalWidth > 0")
    actions = page.locator(".videos li").first.locator(".acts > *").all_inner_texts()
    assert actions == ["Open", "Remove"]
    before = page.locator(".videos li").count()
    asked: list[str] = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.locator(".videos li").first.get_by_role("button", name="Remove").click()
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    page.locator(".videos li").first.get_by_role("button", name="Remove").click()
    page.wait_for_function("n => document.querySelectorAll('.videos li').length === n", arg=before - 1)
    assert all("The file itself is not deleted" in message for message in asked)
    assert len(asked) == 2

    page.locator(".encoder-panel summary").click()
    row = page.locator(".encoders li", has_text="hub:clip-b32")
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    row.get_by_role("button", name="Download 608 MB: hub:clip-b32").click()
    assert "608 MB" in asked[-1]
    assert "licence MIT" in asked[-1]
    used = page.locator(".encoders li").filter(has=page.get_by_text("things", exact=True))
    assert "in use" in used.inner_text()
    picture_of(page, "library-tools")


def test_an_empty_page_offers_the_models_that_are_missing(
    light_serving: Callable[..., Any], make_video: Callable[..., Path], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    served = light_serving(make_video(tmp_path / "film.mp4"), tmp_path / "library")
    started: list[str] = []
    clip = {"name": "clip", "megabytes": 78, "licence": "MIT by its card", "good_for": "scenes and actions"}
    job = JobOut.new("0123456789abcdef", "download", "offline models", "done").model_dump()

    def status(route: Any) -> None:
        answer = route.fetch()
        body = answer.json()
        body["library"]["videos"] = 0
        route.fulfill(response=answer, json=body)

    def download(route: Any) -> None:
        started.append(route.request.post_data)
        route.fulfill(status=202, json=job)

    def prepare(page: Any) -> None:
        found = {"changes": True, "encoders": [], "missing": [clip]}
        page.route("**/api/v1/encoders", lambda route: route.fulfill(json=found))
        page.route("**/api/v1/status", status)
        page.route("**/api/v1/encoders/download", download)

    page = open_page(served.address, prepare=prepare)
    offer = page.locator(".missing")
    offer.get_by_text("What each model is for").click()
    assert "clip (78 MB)" in offer.inner_text()
    assert "licence: MIT by its card" in offer.inner_text()
    picture_of(page, "missing-models")
    page.once("dialog", lambda dialog: dialog.dismiss())
    offer.get_by_role("button", name="Download 78 MB").click()
    assert started == []
    page.once("dialog", lambda dialog: dialog.accept())
    offer.get_by_role("button", name="Download 78 MB").click()
    page.get_by_text("Downloading models. The Library view shows the progress.").wait_for()
    assert json.loads(started[0]) == {"encoder": "offline"}
