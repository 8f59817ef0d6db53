"""Every view: axe-core finds nothing serious in it, and a picture of it is kept for people to look at.

Pictures are taken if MOMENTSEEK_SCREENSHOTS names a folder for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DEVICES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}
SCHEMES = {"dark": ("color-contrast",), "light": ()}
"""What axe looks at in the dark and in the light; nothing means everything."""
TOKEN = "a token nobody would guess"
JUDGED, OPEN = "a motorcycle in a garage", "a red cup on a table"
JUDGE = """async ([judged, open]) => {
    const send = async (method, path, body) => (await fetch(`/api/v1/judging/${path}`, {
        method, headers: {"Content-Type": "application/json"}, body: body && JSON.stringify(body),
    })).json();
    const query = await send("POST", "queries", {text: judged, depth: 10});
    await send("POST", "queries", {text: open, depth: 10});
    for (const annotator of ["ann", "bob"]) {
        for (;;) {
            const {candidate} = await send("GET", `queries/${query.id}/next?annotator=${annotator}`);
            if (!candidate) break;
            const relevance = Math.round(3 * candidate.start + candidate.video_id) % 5;
            await send("PUT", "judgements", {query: query.id, candidate: candidate.id, annotator, relevance});
        }
    }
}"""
"""Two people agree on one query; another waits for somebody."""
KEEP = """async (video) => {
    const send = async (path, body) => (await fetch(`/api/v1/shelf/favourites${path}`, {
        method: "PUT", headers: {"Content-Type": "application/json"}, body: JSON.stringify({person: "me", ...body}),
    })).json();
    const {favourites: [kept]} = await send("", {moment: `${video}:13.500-22.500`, query: "a rocket taking off"});
    await send(`/${kept.id}`, {note: "for the opening", tags: ["opening", "rockets"]});
}"""
"""A moment with a note and tags."""
RUNNING = {
    "id": "one", "state": "running", "kind": "add", "folder": "Holiday", "files_done": 2, "files_total": 7,
    "file": "beach.mp4", "fraction": 0.31, "rate": 24.0, "seconds_left": 95.0, "added": 0, "unchanged": 0,
    "failed": [], "error": None, "started": 1760000000.0, "ended": None,
}  # fmt: skip


devices = pytest.mark.parametrize("device", ["desktop", pytest.param("phone", marks=pytest.mark.figures)])


@pytest.fixture
def folder() -> Path | None:
    """Where pictures are kept, if they are."""
    named = os.environ.get("MOMENTSEEK_SCREENSHOTS")
    if not named:
        return None
    Path(named).mkdir(parents=True, exist_ok=True)
    return Path(named)


def keep_pictures(page: Any, folder: Path | None, name: str) -> None:
    """The whole page in the dark and in the light, when every picture in it is there."""
    if folder is None:
        return
    page.mouse.move(0, 0)
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_function("""() => {
        const pictures = [...document.images];
        pictures.forEach((picture) => (picture.loading = "eager"));
        return pictures.every((picture) => picture.complete);
    }""")
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        path = folder / f"{name}-{scheme}.png"
        page.screenshot(path=path, full_page=True)
        assert path.stat().st_size > 10_000


def violations(page: Any, axe: str, *rules: str) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    options = {"resultTypes": ["violations"], "preload": False} | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("(options) => axe.run(document, options)", options)["violations"]
    return [
        f"{one['impact']} {one['id']}: {[node['html'][:150] for node in one['nodes'][:3]]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.fixture(scope="session")
def shown(judged: Any, start_browser: Callable[[], Any]) -> Any:
    """A server of which every view has something to show: judgements, and a file that could not be added."""
    page = start_browser().new_page()
    page.goto(judged.address + "#library")
    page.evaluate(JUDGE, [JUDGED, OPEN])
    page.evaluate(KEEP, judged.ids["lecture.mp4"])
    page.get_by_role("button", name="Add more").click()
    page.wait_for_selector("section.panel > .failures li", timeout=120_000)
    page.close()
    return judged


@pytest.mark.slow
@devices
def test_axe_finds_nothing_serious_in_any_view(
    device: str, folder: Path | None, shown: Any, open_page: Callable[..., Any], axe: str
) -> None:
    def results() -> None:
        page.get_by_role("button", name="weaker results").click()
        page.wait_for_selector("ol.hits .level.weak")

    def judge() -> None:
        page.get_by_label("Your name").fill("cleo")
        page.get_by_label("Your name").press("Tab")
        page.locator(".query", has_text=OPEN).click()
        page.wait_for_function("() => document.querySelector('.judging video').readyState >= 2")
        page.get_by_role("button", name="Evaluate").click()
        page.wait_for_selector(".figure")

    def compare() -> None:
        page.get_by_label("For one query").fill("a rocket taking off")
        page.get_by_role("button", name="Compare", exact=True).click()
        page.wait_for_selector("a.moment")
        page.get_by_role("button", name="Compare on judged queries").click()
        page.wait_for_selector(".figure")

    film = shown.ids["lecture.mp4"]
    views: dict[str, tuple[str, str, Callable[[], None]]] = {
        "search": ("", "#q", lambda: page.get_by_text("Search tips").click()),
        "results": ("#q=will%20they%20accept%20the%20old%20money", "ol.hits mark", results),
        "options": ("#q=a%20rocket&fusion=scores", "ol.hits img", lambda: page.get_by_text("Export results").click()),
        "player": (f"#v={film}&t=13.5,22.5&q=a%20rocket%20taking%20off", ".other", lambda: None),
        "saved": ("#saved", ".saved .told", lambda: None),
        "library": ("#library", ".videos li", lambda: page.wait_for_selector(".job progress")),
        "judge": ("#judge", ".figures select", judge),
        "compare": ("#compare", ".settings", compare),
    }
    page = open_page(shown.address, reduced_motion="reduce", **DEVICES[device])
    found = []
    for name, (fragment, sign, act) in views.items():
        if name == "library":
            page.route("**/api/v1/jobs", lambda route: route.fulfill(json={"jobs": [RUNNING]}))
        if name != "search":
            page.goto(f"{shown.address}?{name}{fragment}")  # another address, so that the page is loaded anew
        page.wait_for_selector(sign)
        act()
        keep_pictures(page, folder, f"{name}-{device}")
        for details in page.locator("details:visible").all():
            details.evaluate("(element) => (element.open = true)")
        for scheme, rules in SCHEMES.items() if axe else ():
            page.emulate_media(color_scheme=scheme)
            found += [f"{name}, {scheme}: {one}" for one in violations(page, axe, *rules)]
        page.unroute("**/api/v1/jobs")
    assert found == []
    if not axe:
        pytest.skip("needs axe-core: its axe.min.js in MOMENTSEEK_AXE, or npm to fetch it")


@pytest.mark.slow
@devices
def test_pictures_of_the_way_in(device: str, folder: Path | None, guarded: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(guarded.address, expected=("401",), **DEVICES[device])
    page.get_by_label("Token", exact=True).fill("a wrong one")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("The token is wrong").wait_for()
    keep_pictures(page, folder, f"login-{device}")
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Log out").wait_for()
    page.locator(".lead:visible", has_text="4 videos").wait_for()
    keep_pictures(page, folder, f"begin-{device}")
