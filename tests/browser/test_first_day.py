"""The first day of a new user: install from a clone into an empty environment, add, search in every way, look at the
page on a desk and on a phone, export, ask the API, and let an assistant ask.

Pictures of the page are kept if MOMENTSEEK_SCREENSHOTS names a folder for them; the films are made here.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parent.parent.parent
CLONED = ("pyproject.toml", "hatch_build.py", "constraints.txt", "README.md", "LICENSE", "CHANGELOG.md", "src")
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
pytestmark = [pytest.mark.figures, pytest.mark.slow]


class Newcomer:
    """Somebody with an environment and a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.bin = folder / "home", folder / "environment" / "bin"
        self.home.mkdir()
        models = {name: value for name, value in os.environ.items() if name == "MOMENTSEEK_MODELS"}
        self.env = {
            "HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin", "MOMENTSEEK_ENCODER": "things", **models,
        }  # fmt: skip

    def run(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run ``momentseek WORDS`` as they would type it."""
        command = [str(self.bin / "momentseek"), *map(str, words)]
        done = subprocess.run(command, cwd=self.home, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        return done


def readme_extras() -> str:
    """What the README tells a newcomer to install, as ``.[all]``."""
    found = re.search(r"^\$ pip install -c constraints.txt '(\.\[[\w,]+\])'", (ROOT / "README.md").read_text(), re.M)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    """The clone, installed by the README's line into an environment that has nothing else."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        pytest.skip("needs uv to make an environment (pip install uv)")
    folder = tmp_path_factory.mktemp("first-day")
    clone = folder / "clone"
    clone.mkdir()
    for name in CLONED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, clone / name)
    made = subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder / "environment"], check=False)
    install = [uv, "pip", "install", "-q", "--python", folder / "environment", "-c", "constraints.txt", readme_extras()]
    done = subprocess.run(install, cwd=clone, capture_output=True, text=True, check=False)
    if made.returncode or done.returncode:
        pytest.skip(f"the packages cannot be had here: {done.stderr[-500:]}")
    user = Newcomer(folder)
    weights = subprocess.run(
        [user.bin / "momentseek", "models", "get", "--yes"], env=user.env, capture_output=True, text=True, check=False
    )
    if weights.returncode:
        pytest.skip(f"the weights cannot be had here: {weights.stderr[-500:]}")
    return user


@pytest.fixture(scope="module")
def demo_folder(newcomer: Newcomer) -> Path:
    """What ``momentseek demo`` makes: films, one of which speaks and one has a slide, and a library of them."""
    folder = newcomer.home / "sample"
    told = newcomer.run("demo", "--into", folder)
    assert "The right scene is first for" in told.stdout
    return folder


def test_it_runs_without_an_environment_of_its_own(newcomer: Newcomer) -> None:
    """What docs/installing.md says of uv: run once, and installed as a command."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    clone, env = newcomer.bin.parent.parent / "clone", {**os.environ, "HOME": str(newcomer.home)}
    once = [uv, "tool", "run", "-q", "--python", sys.executable, "--from", clone, "momentseek", "--version"]
    assert subprocess.run(once, env=env, capture_output=True, text=True, check=True).stdout.startswith("momentseek ")
    install = [uv, "tool", "install", "-q", "--python", sys.executable, clone]
    subprocess.run(install, env=env, capture_output=True, check=True)
    installed = newcomer.home / ".local" / "bin" / "momentseek"
    done = subprocess.run([installed, "--version"], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("momentseek ")


def test_what_is_installed_is_said(newcomer: Newcomer) -> None:
    told = newcomer.run("doctor").stdout
    assert "speech" in told
    assert "text on screen" in told


def test_the_videos_are_added_and_searched_in_every_way(newcomer: Newcomer, demo_folder: Path) -> None:
    films = demo_folder / "films"
    library = ("--library", newcomer.home / "films")
    assert "added" in newcomer.run("add", films, "--ocr", *library).stderr
    assert "unchanged" in newcomer.run("add", films, "--ocr", *library).stderr
    assert "adding" not in newcomer.run("status", *library).stdout

    def first(*words: object) -> dict[str, Any]:
        found = json.loads(newcomer.run("search", *words, "--json", *library).stdout)
        return {"note": found["note"], **found["hits"][0]}

    assert first("a rocket taking off")["video"] == "lecture.mp4"
    assert first('"old money"')["video"] == "trip.mp4"
    assert first("name:trip in:trip*")["video"] == "trip.mp4"
    asked = first("what did they say about the old money?")
    assert (asked["video"], list(asked["streams"])) == ("trip.mp4", ["speech"])
    assert "read as a question about what is said" in asked["note"]
    assert first("--like", "lecture.mp4@0:15", "--all")["video"]
    assert "text" in first("text:timetable")["streams"]
    assert newcomer.run("search", "before:2002", "a rocket", *library).stdout == ""
    doubt = json.loads(newcomer.run("search", "a man opens the door", "--json", *library).stdout)["note"]
    assert "opens" in doubt
    assert doubt in newcomer.run("search", "a man opens the door", *library).stderr  # the same everywhere
    table = newcomer.run("search", "a rocket taking off", "--csv", *library).stdout
    assert next(csv.DictReader(io.StringIO(table)))["video"] == "lecture.mp4"
    newcomer.run("search", "--like", "lecture.mp4@9:03", *library, code=2)
    newcomer.run("search", "a rocket", "--edl", "r.edl", "--fcpxml", "r.fcpxml", "--html", "r.html", *library)
    assert " C        " in (newcomer.home / "r.edl").read_text()
    newcomer.run("search", "a rocket", "-k", 1, "--cut", "clips", *library)
    assert len(list((newcomer.home / "clips").iterdir())) == 1


@pytest.fixture(scope="module")
def address(newcomer: Newcomer, demo_folder: Path) -> Iterator[str]:
    """The page of the sample library, served by the newcomer's own installation."""
    command = [newcomer.bin / "momentseek", "serve", "--port", "0", "--library", demo_folder / "library"]
    server = subprocess.Popen(command, env=newcomer.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield server.stdout.readline().split()[-1]
    server.terminate()
    server.communicate(timeout=30)


@pytest.mark.parametrize("device", ["desktop", "phone"])
def test_the_page_on_a_desk_and_on_a_phone(device: str, address: str, open_page: Callable[..., Any]) -> None:
    folder = os.environ.get("MOMENTSEEK_SCREENSHOTS")
    page = open_page(address, reduced_motion="reduce", **(PHONE if device == "phone" else {}))

    def keep(name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.wait_for_function("() => [...document.images].every((one) => one.complete)")
            page.screenshot(path=f"{folder}/first-day-{name}-{device}.png", full_page=True)

    page.get_by_text("Describe what happens, or what is said").wait_for()
    keep("search")
    page.get_by_label("Describe a moment").fill("what did they say about the old money?")
    page.keyboard.press("Enter")
    page.wait_for_selector("ol.hits > li")
    assert "Read as a question about what is said" in page.locator(".summary").inner_text()
    keep("results")
    page.locator("a.moment").first.click()
    page.wait_for_function("() => document.querySelector('.player video')?.readyState >= 2")
    page.locator(".exports .keep").click()
    page.get_by_role("button", name="Kept").wait_for()
    keep("player")
    page.get_by_role("link", name="Saved", exact=True).click()
    page.locator(".saved a.moment").wait_for()
    keep("saved")
    page.locator(".saved .hit").get_by_role("button", name="Remove").click()
    page.locator(".saved .none").wait_for()
    page.get_by_role("link", name="Library", exact=True).click()
    page.locator(".videos li").first.wait_for()
    keep("library")


def test_the_api(address: str) -> None:
    found = httpx.get(f"{address}api/v1/search", params={"q": "a rocket taking off", "k": 3}).json()
    assert found["hits"][0]["name"] == "lecture.mp4"
    edl = httpx.get(f"{address}api/v1/export", params={"q": "a rocket taking off", "kind": "edl"})
    assert "* FROM CLIP NAME: lecture.mp4" in edl.text


def test_an_assistant(newcomer: Newcomer, demo_folder: Path) -> None:
    mcp = pytest.importorskip("mcp")
    words = ["mcp", "--library", str(demo_folder / "library")]
    server = mcp.StdioServerParameters(command=str(newcomer.bin / "momentseek"), args=words, env=newcomer.env)

    async def ask() -> dict[str, Any]:
        async with mcp.Client(mcp.stdio_client(server)) as client:
            query = "what did they say about the old money?"
            found: dict[str, Any] = (await client.call_tool("search_moments", {"query": query})).structured_content
            return found

    with ThreadPoolExecutor(1) as thread:  # the browser has an event loop in this one
        found = thread.submit(lambda: asyncio.run(ask())).result()
    assert found["hits"][0]["video"] == "trip.mp4"
    assert any("old money" in line for line in found["hits"][0]["said"])
