"""Make the pictures of the documentation again: the page in a real browser, and the plots of commands.

    python tools/pictures.py DEMO [--out docs/images] [--only NAME]…

DEMO is a folder that ``momentseek demo --into DEMO`` filled; a copy of its library is served. ``make pictures`` does
both. It needs Chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parent.parent
WIDTH = 1280
HEIGHTS = {"player": 1110}
COLOURS = 256
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
KITCHEN = ("--truth", "examples/kitchen/truth.jsonl")
RUNS = ("examples/kitchen/careful.jsonl", "examples/kitchen/hasty.jsonl")
ADD_QUERY = """async (text) => { await fetch("/api/v1/judging/queries", {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({text, depth: 10}) }); }"""
COMPLETE = """() => { const all = [...document.images];
    all.forEach((one) => (one.loading = "eager")); return all.every((one) => one.complete); }"""


def momentseek(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "momentseek", *map(str, arguments)]


@contextmanager
def serve(library: Path, films: Path) -> Iterator[str]:
    """The address of a server of the library, which shows no other folder than that of its films."""
    command = momentseek("serve", "--library", library, "--folder", films, "--port", 0)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def search(page: Any) -> None:
    page.goto(page.url + "#q=a%20rocket%20taking%20off")
    page.get_by_role("button", name="weaker results").click()
    page.wait_for_selector("ol.hits .level.weak")


def player(page: Any) -> None:
    search(page)
    page.locator("ol.hits a").first.click()
    page.wait_for_function("() => document.querySelector('video')?.readyState >= 2")
    page.wait_for_selector(".other")


def library(page: Any) -> None:
    page.goto(page.url + "#library")
    page.wait_for_selector(".videos li")


def judge(page: Any) -> None:
    page.evaluate(ADD_QUERY, "a motorcycle in a garage")
    page.goto(page.url + "#judge")
    page.get_by_label("Your name").fill("ann")
    page.get_by_label("Your name").press("Tab")
    page.locator(".query", has_text="a motorcycle").click()
    page.wait_for_function("() => document.querySelector('.judging video').readyState >= 2")


def compare(page: Any) -> None:
    page.goto(page.url + "#compare")
    page.get_by_label("For one query").fill("a rocket taking off")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.wait_for_selector("a.moment")


VIEWS: dict[str, Callable[[Any], None]] = {
    "page": search, "player": player, "library": library, "judge": judge, "compare": compare,
}  # fmt: skip


def picture_views(demo: Path, out: Path, names: list[str]) -> None:
    """Pictures of the views of the page, each in a window of its own."""
    from playwright.sync_api import sync_playwright

    browser = os.environ.get("MOMENTSEEK_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("pictures need Chromium; install it, or name it: MOMENTSEEK_CHROMIUM=…")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        shutil.copytree(demo / "library", Path(folder) / "library")
        with serve(Path(folder) / "library", demo / "films") as address:
            chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            for name in names:
                page = chromium.new_page(
                    viewport={"width": WIDTH, "height": HEIGHTS.get(name, 800)},
                    color_scheme="light",
                    reduced_motion="reduce",
                )
                page.goto(address)
                VIEWS[name](page)
                page.mouse.move(0, 0)
                page.wait_for_function(COMPLETE)
                page.screenshot(path=out / f"{name}.png")
                page.close()
            chromium.close()


def draw_plots(out: Path, names: list[str]) -> None:
    """Plots as commands draw them, of the examples and of simulated films."""
    with tempfile.TemporaryDirectory() as folder:
        films, plots = Path(folder) / "films", Path(folder) / "plots"
        splits = [films / f"{split}.txt" for split in ("train", "val", "test_iid", "test_ood")]
        measures = ("-m", "AxIoU@5", "--only", "location")
        commands = {
            "ranked-lists": [("evaluate", RUNS[0], *KITCHEN, "--plots", plots)],
            "recall-by-threshold": [("diagnose", *RUNS, *KITCHEN, *measures, "--plots", plots)],
            "locations-after": [
                ("simulate", "--like", "charades", "--videos", 300, "--pool", 20, "--out", films),
                ("data", "resplit", *splits, "--durations", films / "durations.json", "--preset", "paper",
                 "--out", Path(folder) / "resplit", "--plots", plots),
            ],
        }  # fmt: skip
        for name in names:
            for command in commands[name]:
                subprocess.run(momentseek(*command), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            shutil.copy(plots / f"{name}.png", out)


PLOTS = ("ranked-lists", "recall-by-threshold", "locations-after")


def shrink(path: Path) -> None:
    """Fewer colours and no metadata: a picture for a page, and the same bytes for the same picture."""
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images")
    parser.add_argument("--only", action="append", choices=[*VIEWS, *PLOTS], metavar="NAME")
    options = parser.parse_args()
    wanted = options.only or [*VIEWS, *PLOTS]
    options.out.mkdir(parents=True, exist_ok=True)
    if views := [name for name in VIEWS if name in wanted]:
        picture_views(options.demo, options.out, views)
    if plots := [name for name in PLOTS if name in wanted]:
        draw_plots(options.out, plots)
    for name in wanted:
        shrink(options.out / f"{name}.png")
        print(f"wrote {options.out / name}.png")


if __name__ == "__main__":
    main()
