from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.server.folders import FolderIds, ListingBudget, count_videos, count_videos_each, list_folder
from momentseek.server.settings import Limits

AMPLE = ListingBudget(1000, math.inf)


def test_folders_are_walked_by_ids_alone(serve: Callable[..., TestClient], shared: Path) -> None:
    client = serve(folders=(shared / "films", shared / "more"))
    top = client.get("/api/v1/folders").json()["folders"]
    assert [(f["name"], f["videos"], f["complete"]) for f in top] == [("films", 3, True), ("more", 1, True)]
    films = client.get(f"/api/v1/folders/{top[0]['id']}").json()
    assert films["parent"] is None
    [inner] = films["folders"]
    assert (inner["name"], inner["videos"]) == ("inner", 1)
    deep = client.get(f"/api/v1/folders/{inner['id']}").json()
    assert (deep["parent"], deep["folders"]) == (top[0]["id"], [])
    assert str(shared) not in client.get("/api/v1/folders").text


def test_home_folder_is_offered_only_on_a_local_server_without_folders(
    serve: Callable[..., TestClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "me" / "Holiday").mkdir(parents=True)
    (tmp_path / "me" / "Holiday" / "beach.mp4").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "me"))

    def names(**settings: Any) -> list[str]:
        return [one["name"] for one in serve(**settings).get("/api/v1/folders").json()["folders"]]

    assert "me" in names()
    assert "me" not in names(allow_changes=False)
    assert names(folders=(tmp_path / "me" / "Holiday",)) == ["Holiday"]


def test_ids_are_of_one_server_only(serve: Callable[..., TestClient], shared: Path) -> None:
    first, second = (serve(folders=(shared / "films",)) for _ in range(2))
    id = first.get("/api/v1/folders").json()["folders"][0]["id"]
    assert second.get(f"/api/v1/folders/{id}").status_code == 404


def test_links_and_hidden_folders_are_passed_over(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / ".hidden", root / "plain", outside):
        folder.mkdir(parents=True)
        (folder / "a.mp4").touch()
    os.symlink(outside, root / "link")
    known = FolderIds()
    top = known.mint(root, root)
    here = list_folder(root, AMPLE)
    assert (here.folders, here.videos, here.complete) == (("plain",), 0, True)
    [plain] = known.below(top, here.folders)
    assert (plain.path, known.parent(plain)) == (root / "plain", top)
    assert known.parent(top) is None
    counted = count_videos(root, AMPLE)
    assert (counted.videos, counted.complete) == (1, True)


def _tree(root: Path, folders: int, files: int) -> list[Path]:
    made = [root / f"{i:02}" for i in range(folders)]
    for folder in made:
        folder.mkdir(parents=True)
        for i in range(files):
            (folder / f"{i}.mp4").touch()
    return made


def test_counting_stops_after_so_many_entries(tmp_path: Path) -> None:
    [folder] = _tree(tmp_path, 1, 6)
    for entries, videos, complete in ((4, 4, False), (6, 6, True), (0, 0, False)):
        counted = count_videos(folder, ListingBudget.of(entries, 60.0))
        assert (counted.videos, counted.complete) == (videos, complete)


def test_counting_stops_when_the_time_is_over(tmp_path: Path) -> None:
    [folder] = _tree(tmp_path, 1, 6)
    seconds = count()
    counted = count_videos(folder, ListingBudget(1000, 3, lambda: next(seconds)))
    assert (counted.videos, counted.complete) == (3, False)


def test_a_huge_folder_leaves_something_for_the_others(tmp_path: Path) -> None:
    huge = _tree(tmp_path / "a", 1, 40)[0]
    small = _tree(tmp_path / "b", 3, 5)
    counted = count_videos_each([huge, *small], ListingBudget.of(40, 60.0))
    assert [(one.videos, one.complete) for one in counted] == [(10, False), (5, True), (5, True), (5, True)]


def test_a_listing_says_that_there_are_more(serve: Callable[..., TestClient], tmp_path: Path) -> None:
    _tree(tmp_path / "tree", 3, 5)
    (tmp_path / "tree" / "top.mp4").touch()
    for entries, whole in ((100, True), (10, False)):
        client = serve(folders=(tmp_path / "tree",), limits=Limits(listing_entries=entries))
        [top] = client.get("/api/v1/folders").json()["folders"]
        found = client.get(f"/api/v1/folders/{top['id']}").json()
        assert (top["complete"], found["complete"], found["more"]) == (whole, whole, False)
        assert found["videos"] == 1 + sum(one["videos"] for one in found["folders"])
        assert [one["complete"] for one in found["folders"]] == [whole] * 3
        assert (found["videos"] == 16) == whole
    client = serve(folders=(tmp_path / "tree",), limits=Limits(listing_entries=2))
    [top] = client.get("/api/v1/folders").json()["folders"]
    found = client.get(f"/api/v1/folders/{top['id']}").json()
    assert (found["more"], found["complete"]) == (True, False)


def test_listing_takes_no_thread_from_searches(serve: Callable[..., TestClient], tmp_path: Path) -> None:
    """While all who list folders hang on a dead drive, everything else is answered."""
    hangs = threading.Event()
    client = serve(folders=(tmp_path,), limits=Limits(listings=1, listing_seconds=0.1))
    service = client.app.state.service  # type: ignore[attr-defined]
    listing = threading.Event()

    def hang(_: Library) -> None:
        listing.set()
        hangs.wait()

    busy = threading.Thread(target=lambda: asyncio.run(service.listers.run(hang)))
    busy.start()
    try:
        assert listing.wait(10)
        for path in ("/api/v1/status", "/api/v1/search?q=red", "/api/v1/videos"):
            assert client.get(path).status_code == 200
    finally:
        hangs.set()
        busy.join()
    assert client.get("/api/v1/folders").status_code == 200


def test_a_folder_that_is_gone_is_no_longer_known(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    known = FolderIds()
    folder = known.mint(tmp_path / "here", tmp_path)
    assert known.get(folder.id) == folder
    (tmp_path / "here").rmdir()
    assert known.get(folder.id) is None
