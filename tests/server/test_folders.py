from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from fastapi.testclient import TestClient

from momentseek.server import folders
from momentseek.server.folders import Folders, count_videos


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
    known = Folders()
    top = known.mint(root, root)
    assert [folder.name for folder in known.below(top)] == ["plain"]
    assert known.parent(top) is None
    assert count_videos(root) == (1, True)


def test_counting_stops_in_a_very_large_folder(tmp_path: Path, monkeypatch: object) -> None:
    for i in range(6):
        (tmp_path / f"{i}.mp4").touch()
    before, folders.MOST_LOOKED_AT = folders.MOST_LOOKED_AT, 4
    try:
        assert count_videos(tmp_path) == (4, False)
    finally:
        folders.MOST_LOOKED_AT = before


def test_a_folder_that_is_gone_is_no_longer_known(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    known = Folders()
    folder = known.mint(tmp_path / "here", tmp_path)
    assert known.get(folder.id) == folder
    (tmp_path / "here").rmdir()
    assert known.get(folder.id) is None
