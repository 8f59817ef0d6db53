"""A real browser before a real server with the sample library.

Every page that a test opens is watched: a script error, a refusal of the content policy or a request to elsewhere fails
the test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from processes import start_momentseek

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The same browser without and with its windows, which take half of the time of a test although nobody sees them."""
CHROMIUM = os.environ.get("MOMENTSEEK_CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
FLAGS = ("--no-sandbox", "--disable-gpu", "--in-process-gpu", "--renderer-process-limit=1")
"""Nobody looks at the pictures, and a test opens one page after the other: fewer processes do as well."""
TOKEN = "a token nobody would guess"
ROOT = Path(__file__).parent.parent.parent
WATCH_FRAMES = """
document.addEventListener("loadedmetadata", (event) => {
  const video = event.target;
  const each = (_, frame) => {
    window.frameShown = frame.mediaTime;
    window.framesShown = [...(window.framesShown ?? []).slice(-500), frame.mediaTime];
    video.requestVideoFrameCallback(each);
  };
  video.requestVideoFrameCallback(each);
}, true);
"""
"""Keeps the time of the frame that is really on the screen in ``window.frameShown``, and all in ``framesShown``."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _here(item):
            item.add_marker(pytest.mark.browser)


HERE = f"{Path(__file__).parent}{os.sep}"


def _here(item: pytest.Item) -> bool:
    return str(item.path).startswith(HERE)


_RUNNING: list[Any] = []
"""Playwright and its browser, when they run."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the browser when a test of another folder is next: its event loop would be in the way of other tests'."""
    if _RUNNING and (nextitem is None or not _here(nextitem)):
        _RUNNING.pop().close()
        _RUNNING.pop().stop()


@dataclass(frozen=True)
class Served:
    """A running server: its page, and the library it serves."""

    address: str
    library: Path
    process: int
    """The server's process id."""

    @property
    def ids(self) -> dict[str, int]:
        """Name → id of its videos."""
        from momentseek import Library

        with Library.open(self.library) as library:
            return {video.name: video.id for video in library.videos()}


@contextmanager
def _serving(library: Path, *options: str, light: bool = False) -> Iterator[Served]:
    process = start_momentseek("serve", "--library", library, "--port", 0, *options, light=light)
    try:
        yield Served(process.stdout.readline().split()[-1], library, process.pid)
    finally:
        process.terminate()
        _, said = process.communicate(timeout=30)
        print(said, file=sys.stderr)  # which is shown if a test failed


@pytest.fixture(scope="session")
def demo(sample: Path) -> Path:
    """``films/`` and ``library/`` of the sample collection, which tests only read."""
    for module in ("fastapi", "uvicorn"):
        pytest.importorskip(module)
    return sample


@pytest.fixture(scope="session")
def served(chromium: str, demo: Path) -> Iterator[Served]:
    """The sample library, which tests only look at."""
    with _serving(demo / "library") as running:
        yield running


@pytest.fixture
def guarded(chromium: str, demo: Path, tmp_path: Path, make_video: Callable[..., Path]) -> Iterator[Served]:
    """A copy of the library that a test may change, a folder ``more`` to add, and a token before everything."""
    shutil.copytree(demo / "library", tmp_path / "library")
    more = tmp_path / "more"
    more.mkdir()
    make_video(more / "harbour.mp4", [(4.0, (200, 30, 30)), (5.0, (30, 30, 200))], rate=10, size=(160, 90))
    (more / "harbour.srt").write_text("1\n00:00:01,000 --> 00:00:03,000\nThe lighthouse keeper waved.\n")
    (more / "broken.mp4").write_bytes(b"not a video at all")
    with _serving(tmp_path / "library", "--folder", str(more), "--token", TOKEN) as running:
        yield running


@pytest.fixture
def serving(chromium: str) -> Iterator[Callable[..., Served]]:
    """``serving(library, *options)``: a server for one test."""
    with ExitStack() as open:
        yield lambda library, *options: open.enter_context(_serving(library, *options))


@pytest.fixture
def light_serving(chromium: str) -> Iterator[Callable[..., Served]]:
    """``light_serving(film, library, *options)``: a server of a new library of a film, with encoders that cost nothing.

    ``LIGHT_SLOW`` is how many seconds each picture takes.
    """
    for module in ("av", "fastapi", "uvicorn"):
        pytest.importorskip(module)
    with ExitStack() as open:

        def start(film: Path, library: Path, *options: str) -> Served:
            words = ("add", film, "--library", library, "--encoder", "colours")
            adding = start_momentseek(*words, light=True, env=os.environ | {"LIGHT_SLOW": "0"})
            _, said = adding.communicate()
            assert adding.returncode == 0, said
            return open.enter_context(_serving(library, *options, light=True))

        yield start


@pytest.fixture(scope="session")
def judged(chromium: str, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A copy of the library in which tests judge."""
    library = tmp_path_factory.mktemp("judged") / "library"
    shutil.copytree(demo / "library", library)
    broken = library.parent / "more"
    broken.mkdir()
    (broken / "broken.mp4").write_bytes(b"not a video at all")
    with _serving(library, "--folder", str(broken)) as running:
        yield running


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's program; without it the tests are skipped."""
    pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install playwright)")
    if not CHROMIUM:
        pytest.skip("needs chromium on the PATH, or its path in MOMENTSEEK_CHROMIUM")
    return CHROMIUM


@pytest.fixture(scope="session")
def start_browser(chromium: str) -> Callable[[], Any]:
    """``start_browser()``: the browser, started unless it runs."""

    def start() -> Any:
        if not _RUNNING:
            from playwright.sync_api import sync_playwright

            playwright = sync_playwright().start()
            _RUNNING.append(playwright)
            _RUNNING.append(playwright.chromium.launch(executable_path=chromium, args=FLAGS))
        return _RUNNING[-1]

    return start


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script: from MOMENTSEEK_AXE, node_modules, or npm; otherwise nothing."""
    given = os.environ.get("MOMENTSEEK_AXE")
    for place in (Path(given) if given else None, ROOT / "node_modules" / "axe-core" / "axe.min.js"):
        if place is not None and place.is_file():
            return place.read_text()
    if shutil.which("npm") is None:
        return ""
    folder = tmp_path_factory.mktemp("axe")
    fetched = subprocess.run(
        ["npm", "pack", "axe-core@4", "--silent"], cwd=folder, capture_output=True, timeout=60, check=False
    )
    packed = next(folder.glob("*.tgz"), None)
    if fetched.returncode or packed is None:
        return ""
    with tarfile.open(packed) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


@pytest.fixture
def browser(start_browser: Callable[[], Any]) -> Any:
    """The running browser."""
    return start_browser()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """``open_page(address, …)``: a page in a browser of its own, with the options of Playwright's contexts.

    ``prepare(page)`` is called before the address is opened.
    """
    contexts = []
    troubles: list[str] = []

    def open(
        address: str, *, expected: tuple[str, ...] = (), prepare: Callable[[Any], object] | None = None, **options: Any
    ) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.add_init_script(WATCH_FRAMES)
        page = context.new_page()
        page.set_default_timeout(120_000)

        def told(kind: str, text: str) -> None:
            if not any(part in text for part in expected):
                troubles.append(f"{kind}: {text}")

        page.on("pageerror", lambda error: told("error", str(error)))
        page.on(
            "console",
            lambda line: (
                told(line.type, f"{line.text} {line.location['url']}") if line.type in ("error", "warning") else None
            ),
        )
        home = "/".join(address.split("/")[:3])
        page.on("request", lambda r: None if r.url.startswith((home, "blob:")) else told("request to", r.url))
        if prepare is not None:
            prepare(page)
        page.goto(address)
        return page

    yield open
    for context in contexts:
        context.close()
    assert not troubles


@pytest.fixture
def search(served: Served, open_page: Callable[..., Any]) -> Callable[..., Any]:
    """``search(query)``: a page with the results of a query."""

    def run(query: str, **options: Any) -> Any:
        page = open_page(served.address, **options)
        page.get_by_label("Describe a moment").fill(query)
        page.get_by_role("button", name="Search", exact=True).click()
        page.wait_for_selector("ol.hits > li")
        return page

    return run


@pytest.fixture
def settled() -> Callable[[Any], float]:
    """``settled(page)``: the position of the player's video when it has been found and shown."""

    def wait(page: Any) -> float:
        page.wait_for_function("""() => {
            const video = document.querySelector(".player video");
            return video && video.readyState >= 2 && !video.seeking && window.frameShown !== undefined;
        }""")
        time: float = page.evaluate("document.querySelector('.player video').currentTime")
        return time

    return wait
