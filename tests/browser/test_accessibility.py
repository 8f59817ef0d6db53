"""axe-core looks at every view: nothing serious may be left."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script: from MOMENTSEEK_AXE, node_modules, or npm."""
    given = os.environ.get("MOMENTSEEK_AXE")
    for place in (Path(given) if given else None, ROOT / "node_modules" / "axe-core" / "axe.min.js"):
        if place is not None and place.is_file():
            return place.read_text()
    if shutil.which("npm") is None:
        pytest.skip("needs axe-core: its axe.min.js in MOMENTSEEK_AXE, or npm to fetch it")
    folder = tmp_path_factory.mktemp("axe")
    fetched = subprocess.run(
        ["npm", "pack", "axe-core@4", "--silent"], cwd=folder, capture_output=True, timeout=60, check=False
    )
    packed = next(folder.glob("*.tgz"), None)
    if fetched.returncode or packed is None:
        pytest.skip("npm could not fetch axe-core")
    with tarfile.open(packed) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


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


def test_axe_finds_nothing_serious(served: Any, open_page: Callable[..., Any], axe: str) -> None:
    views = {
        "": "#q:focus",
        "#q=will%20they%20accept%20the%20old%20money": "ol.hits mark",
        f"#v={served.ids['lecture.mp4']}&t=13.5,22.5&q=a%20rocket": ".other",
        "#library": ".videos li",
        "#saved": ".saved .none",
        "#judge": ".figures select",
        "#compare": ".settings",
    }
    page = open_page(served.address, reduced_motion="reduce")
    found = []
    for number, (fragment, sign) in enumerate(views.items()):
        if number:
            page.goto(f"{served.address}?{number}{fragment}")  # another address, so that the page is loaded anew
        page.wait_for_selector(sign)
        for details in page.locator("details:visible").all():
            details.evaluate("(element) => (element.open = true)")
        found += [f"{fragment}: {one}" for one in violations(page, axe)]
        page.emulate_media(color_scheme="dark")
        found += [f"{fragment} in the dark: {one}" for one in violations(page, axe, "color-contrast")]
        page.emulate_media(color_scheme="light")
    assert found == []


def test_axe_finds_nothing_serious_while_judging(judged: Any, open_page: Callable[..., Any], axe: str) -> None:
    page = open_page(judged.address + "#judge", reduced_motion="reduce")
    page.get_by_label("Your name").fill("ann")
    page.get_by_label("New query").fill("a cup of coffee")
    page.get_by_role("button", name="Collect moments").click()
    page.wait_for_selector(".judging:visible .level-button")
    assert violations(page, axe) == []
