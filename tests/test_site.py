"""The documentation site: it builds without a warning, is complete, and loads nothing from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import momentseek

ROOT = Path(__file__).parent.parent
FROM_ELSEWHERE = re.compile(
    rb"""<(?:script|img|iframe|link[^>]*rel="(?:stylesheet|icon|preload|preconnect)")[^>]*(?:src|href)="?(?:https?:)?//"""
)


def build(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(once: Callable[..., Path]) -> Path:
    """The site as ``make docs`` builds it."""

    def make(folder: Path) -> None:
        done = build(ROOT, folder / "site")
        assert done.returncode == 0, done.stderr

    return once("site", make) / "site"


@pytest.mark.slow
def test_every_page_is_there_and_can_be_searched(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    pages |= {Path("changelog.html"), Path("contributing.html"), Path("security.html")}
    assert {page for page in pages if not (site / page).exists()} == set()
    indexed = {
        entry["location"].partition("#")[0]
        for entry in json.loads((site / "search/search_index.json").read_text())["docs"]
    }
    assert {str(page) for page in pages} - indexed - {"index.html"} == set()


@pytest.mark.slow
def test_the_page_of_the_api_has_every_public_name_with_its_docstring(site: Path) -> None:
    text = (site / "api.html").read_text()
    for name in set(momentseek.__all__) - {"__version__"}:
        assert f'id="momentseek.{name}"' in text
    for method in ("add", "search", "status"):  # its own, and two that it has from elsewhere
        assert f'id="momentseek.Library.{method}"' in text
    assert ":meth:" not in text
    assert "&gt;&gt;&gt; " in re.sub("<[^>]*>", "", text)


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    assert [path.name for path in site.rglob("*.html") if FROM_ELSEWHERE.search(path.read_bytes())] == []


@pytest.mark.slow
def test_a_dead_link_or_anchor_stops_the_build(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "docs").mkdir()
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        (tmp_path / name).write_text("# Title\n")
    settings = (ROOT / "mkdocs.yml").read_text()
    (tmp_path / "mkdocs.yml").write_text(re.sub(r"(?ms)^nav:.*?^(?=plugins)", "", settings))
    index = tmp_path / "docs/index.md"
    index.write_text("# Home\n\n[there](../CONTRIBUTING.md#title)\n")
    assert build(tmp_path, tmp_path / "site").returncode == 0
    index.write_text("# Home\n\n[nowhere](missing.md) [nothing](../CONTRIBUTING.md#no-such-title)\n")
    failed = build(tmp_path, tmp_path / "site")
    assert failed.returncode == 1
    assert "missing.md" in failed.stderr
    assert "no-such-title" in failed.stderr
