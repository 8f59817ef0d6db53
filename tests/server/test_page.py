from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from momentseek.server import page


@pytest.fixture
def files(tmp_path: Path) -> TestClient:
    folder = tmp_path / "static"
    (folder / "js").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>x</title>")
    (folder / "style.css").write_text("body {}")
    (folder / "js" / "app.js").write_text("export {}")
    (folder / "notes.py").write_text("secret = 1")
    (tmp_path / "outside.css").write_text("outside")
    os.symlink(tmp_path / "outside.css", folder / "link.css")
    app = FastAPI()
    app.include_router(page.page_router(folder))
    return TestClient(app)


@pytest.mark.parametrize(("path", "kind"), [
    ("/", "text/html"), ("/index.html", "text/html"), ("/style.css", "text/css"), ("/js/app.js", "text/javascript"),
    ("/static/js/app.js", "text/javascript"),
])  # fmt: skip
def test_files_have_their_types(files: TestClient, path: str, kind: str) -> None:
    answer = files.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    assert answer.headers["cache-control"] == "no-cache"


def test_a_copy_that_is_still_good_is_not_sent_again(files: TestClient) -> None:
    etag = files.get("/style.css").headers["etag"]
    assert files.get("/style.css", headers={"If-None-Match": etag}).status_code == 304


@pytest.mark.parametrize(
    "path", ["/notes.py", "/link.css", "/js", "/js/", "/../outside.css", "/%2e%2e/outside.css", "/x"]
)
def test_nothing_else_is_there(files: TestClient, path: str) -> None:
    assert files.get(path).status_code == 404


def test_every_module_of_the_page_is_preloaded() -> None:
    index = (page.STATIC_FOLDER / "index.html").read_text(encoding="utf-8")
    preloaded = re.findall(r'<link rel="modulepreload" href="(js/[\w-]+\.js)">', index)
    scripts = sorted((page.STATIC_FOLDER / "js").glob("*.js"))
    assert preloaded == [f"js/{path.name}" for path in scripts]
