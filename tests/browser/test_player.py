from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from momentseek.benchmarks.demo.films import DEMO_FILMS

FRAME = 1 / 20


ROCKET = next(film for film in DEMO_FILMS if film.name == "lecture.mp4").interval("rocket")


@pytest.fixture
def playing(served: Any, open_page: Callable[..., Any], settled: Callable[[Any], float]) -> Callable[..., Any]:
    """A page with a moment open, the rocket's unless said otherwise; nothing moves by itself."""

    def open(name: str = "lecture.mp4", moment: tuple[float, float] = ROCKET, **options: Any) -> Any:
        fragment = f"#v={served.ids[name]}&t={moment[0]:g},{moment[1]:g}&q=a%20rocket%20taking%20off"
        page = open_page(served.address + fragment, **{"reduced_motion": "reduce", **options})
        settled(page)
        return page

    return open


def span(page: Any) -> tuple[float, float]:
    values = [page.locator(f"[data-edge={edge}]").get_attribute("aria-valuenow") for edge in ("start", "end")]
    return float(values[0]), float(values[1])


def drag(page: Any, edge: str, seconds: float, off: float = 0.0) -> None:
    """To a time, and some pixels beside it."""
    area, grip = page.locator(".area").bounding_box(), page.locator(f"[data-edge={edge}]").bounding_box()
    length = float(page.locator("[data-edge=end]").get_attribute("aria-valuemax"))
    x, y = grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2
    now = span(page)[edge == "end"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + (seconds - now) * area["width"] / length + off, y, steps=5)
    page.mouse.up()


def test_a_moment_opens_at_its_start_to_the_frame(search: Callable[..., Any], settled: Callable[[Any], float]) -> None:
    page = search("a rocket taking off", reduced_motion="reduce")
    page.locator("a.moment").first.click()
    settled(page)
    start, end = span(page)
    assert abs(settled(page) - start) < FRAME
    shown = page.evaluate("window.frameShown")
    assert start - 1e-3 <= shown < start + FRAME
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(f"() => document.querySelector('.player video').currentTime > {start + 0.3}")
    assert page.evaluate("document.querySelector('.player video').currentTime") < end


def test_end_of_video_with_fractional_milliseconds_can_be_dragged(
    light_serving: Callable[..., Any], open_page: Callable[..., Any], make_video: Callable[..., Path], tmp_path: Path
) -> None:
    film = make_video(tmp_path / "film.mp4", [(5.0 + 2 / 3, (200, 30, 30))], rate=30, size=(160, 90))
    served = light_serving(film, tmp_path / "library")
    for fragment in ("#v=1", "#v=1&t=1,5.667"):
        page = open_page(served.address + fragment, reduced_motion="reduce")
        page.wait_for_selector("[data-edge=end][aria-valuenow]:visible")
        assert float(page.locator("[data-edge=end]").get_attribute("aria-valuenow")) == 5.667
        drag(page, "end", 4.0)
        assert abs(span(page)[1] - 4.0) < 0.1
        keep = page.locator(".exports .keep")
        keep.click()
        page.get_by_role("button", name="Kept").wait_for()
        drag(page, "end", 3.0)
        assert keep.inner_text() == "☆ Keep"
    kept = page.evaluate("fetch('/api/v1/shelf?person=me').then((answer) => answer.json())")["favourites"]
    assert [abs(one["end"] - 4.0) < 0.1 for one in kept] == [True, True]


def test_it_plays_by_itself_and_loops(search: Callable[..., Any], settled: Callable[[Any], float]) -> None:
    page = search("a rocket taking off")
    page.locator("a.moment").first.click()
    settled(page)
    start, end = span(page)
    page.wait_for_function("() => !document.querySelector('.player video').paused")
    page.evaluate(f"document.querySelector('.player video').currentTime = {end - 0.4}")
    page.wait_for_function(
        """([start, end]) => {
            const late = window.framesShown.findIndex((time) => time > end - 0.4);
            return late >= 0 && window.framesShown.slice(late).some((time) => time < start + 1);
        }""",
        arg=[start, end],
    )
    # the frame of the end is never shown on an idle machine; a busy one calls the page back a few frames late
    assert max(page.evaluate("window.framesShown")) < end + 0.5
    assert not page.evaluate("document.querySelector('.player video').paused")


def test_dragged_handles_set_the_clip_and_snap_to_cuts_unless_alt_is_held(
    playing: Callable[..., Any], tmp_path: Any
) -> None:
    from momentseek.media.probe import probe

    page = playing()
    start, end = span(page)
    drag(page, "end", end - 2.3)
    drag(page, "start", start + 1.2)
    edited = span(page)
    assert edited[0] == pytest.approx(start + 1.2, abs=0.1)
    assert edited[1] == pytest.approx(end - 2.3, abs=0.1)
    with page.expect_download() as download:
        page.get_by_role("button", name="Cut clip").click()
    download.value.save_as(tmp_path / "clip.mp4")
    assert download.value.suggested_filename.startswith("lecture ")
    assert probe(tmp_path / "clip.mp4").duration == pytest.approx(edited[1] - edited[0], abs=FRAME + 1e-3)

    drag(page, "end", end - 3)
    assert span(page)[1] != end
    drag(page, "end", end, off=5)
    assert span(page)[1] == end  # a cut lies there
    drag(page, "end", end - 3)
    page.keyboard.down("Alt")
    drag(page, "end", end, off=5)
    assert end < span(page)[1] < end + 0.5


def test_edit_list_timecode_and_a_copied_link_that_reopens_exactly_the_same(
    playing: Callable[..., Any], settled: Callable[[Any], float], open_page: Callable[..., Any]
) -> None:
    page = playing(permissions=["clipboard-read", "clipboard-write"])
    with page.expect_download() as download:
        page.get_by_role("button", name="EDL", exact=True).click()
    text = download.value.path().read_text()
    rate = int(text.split("FRAME RATE: ")[1].split()[0])
    event = next(line for line in text.splitlines() if line.startswith("001"))
    assert [seconds(code, rate) for code in event.split()[4:6]] == list(ROCKET)
    page.get_by_role("button", name="Copy timecode").click()
    page.get_by_text("Timecode copied").wait_for()
    codes = page.evaluate("navigator.clipboard.readText()").split()
    assert [seconds(code, 20) for code in codes] == list(ROCKET)

    drag(page, "end", span(page)[1] - 1.7)
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Link copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    other = open_page(link, reduced_motion="reduce")
    assert settled(other) == pytest.approx(span(page)[0], abs=FRAME)
    assert span(other) == span(page)
    assert other.locator("h1:visible").inner_text() == page.locator("h1:visible").inner_text()
    other.wait_for_selector(".lane.vision")
    page.wait_for_timeout(200)
    assert page.url == link  # the address followed the handle, so a reload shows the same too
    other.get_by_role("link", name="Back to the results").click()
    other.wait_for_selector("ol.hits > li")
    assert other.locator("#q").input_value() == "a rocket taking off"


def test_frames_step_one_by_one_without_announcing_each_position(
    playing: Callable[..., Any],
) -> None:
    page = playing()
    position = page.locator(".position")
    assert "/" in position.inner_text()
    assert position.get_attribute("aria-live") == "off"
    assert position.evaluate("(element) => element.tagName") != "OUTPUT"
    before = page.evaluate("window.frameShown")
    for step in (1, 2, 3):
        page.keyboard.press(".")
        page.wait_for_function(f"() => Math.abs(window.frameShown - {before + step * FRAME}) < 0.002")
    page.get_by_role("button", name="One frame back").click()
    page.wait_for_function(f"() => Math.abs(window.frameShown - {before + 2 * FRAME}) < 0.002")
    page.keyboard.press("i")
    assert span(page)[0] == pytest.approx(before + 2 * FRAME, abs=1e-3)


def test_words_and_other_moments_lead_to_their_times(playing: Callable[..., Any]) -> None:
    page = playing()
    assert [line.split("\n")[-1] for line in page.locator(".line").all_inner_texts()] == [
        "Nobody had been there before nineteen sixty-nine.",
        "Three, two, one, and we have lift-off.",
        "Every one of these specks is a galaxy.",
    ]
    page.get_by_role("button", name="Every one of these specks is a galaxy").click()
    page.wait_for_function("() => window.frameShown > 22.8 && window.frameShown < 23")
    page.wait_for_selector(".line[aria-current=true] >> text=specks")
    page = playing("trip.mp4", (1, 5))
    page.wait_for_selector(".other")
    others = page.locator(".other")
    assert others.count() >= 2
    asked = others.nth(1).get_attribute("data-span")
    others.nth(1).click()
    assert ",".join(f"{value:g}" for value in span(page)) == asked


def seconds(code: str, rate: int) -> float:
    hours, minutes, whole, frames = map(int, code.split(":"))
    return 3600 * hours + 60 * minutes + whole + frames / rate


def test_a_video_that_is_not_there_is_told(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address + "#v=999&t=1,2", expected=("404",))
    page.locator(".lost").wait_for()
    assert "999" in page.locator(".lost").inner_text()
    assert page.locator("#urgent p").count() == 0  # once is enough


def test_a_moment_is_shown_as_it_was_found(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(
        served.address + "#q=a+rocket+taking+off&localiser=contrast&streams=vision", reduced_motion="reduce"
    )
    with page.expect_request("**/curve?*") as asked:
        page.locator("a.moment").first.click()
    assert {"localiser=contrast", "streams=vision"} <= set(asked.value.url.split("?")[1].split("&"))
    page.wait_for_selector(".lane.vision")
    assert page.locator(".lane.speech:visible").count() == 0
    page.locator(".other").last.click()
    page.wait_for_timeout(200)
    assert page.evaluate("location.hash").endswith("&localiser=contrast&streams=vision")
    page.get_by_role("link", name="Back to the results").click()
    page.wait_for_selector("ol.hits > li")
    assert not page.locator(".options input[value=speech]").is_checked()


def test_a_link_to_a_missing_video_says_so_and_shows_no_other(
    playing: Callable[..., Any], settled: Callable[[Any], float]
) -> None:
    page = playing(expected=("404",))
    good = page.evaluate("location.hash")
    page.evaluate("location.hash = 'v=999&t=1,2'")
    page.locator(".player .lost:visible").wait_for()
    assert "video" in page.locator(".lost").inner_text()
    assert page.locator(".stage:visible, .side:visible, .edges:visible").count() == 0
    assert page.locator("h1:visible").inner_text() == "No video"
    page.wait_for_function("() => !document.title.includes('lecture')")
    page.keyboard.press("i")
    page.wait_for_timeout(200)
    assert page.evaluate("location.hash") == "#v=999&t=1,2"
    page.evaluate("(hash) => { location.hash = hash; }", good)
    page.locator(".stage:visible").wait_for()
    settled(page)
    assert page.locator(".lost:visible").count() == 0
    assert page.locator("h1:visible").inner_text() == "lecture.mp4"
    assert span(page) == ROCKET


def test_a_moment_plays_silently_where_sound_is_not_allowed_yet(served: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(served.address)
    page.evaluate("""() => {
        const play = HTMLMediaElement.prototype.play;
        HTMLMediaElement.prototype.play = function () {
            return this.muted ? play.call(this) : Promise.reject(new DOMException("not yet", "NotAllowedError"));
        };
    }""")
    page.evaluate("(id) => { location.hash = `v=${id}&t=1,4`; }", served.ids["lecture.mp4"])
    page.wait_for_function("() => document.querySelector('.player video')?.currentTime > 1.1")
    page.get_by_role("button", name="Unmute").wait_for()
