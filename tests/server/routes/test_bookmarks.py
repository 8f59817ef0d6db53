"""What people keep: their own, for good, and to take along."""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.media.probe import probe
from momentseek.server.routes import bookmarks

SHELF = "/api/v1/shelf"
HEADERS = {"Content-Type": "application/json"}


def kept(client: TestClient, person: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(SHELF, params={"person": person}).json()
    return found


def test_moments_and_searches_are_kept_for_each_person(serve: Callable[..., TestClient], place: Path) -> None:
    client = serve(place)
    assert kept(client, "ann") == {"person": "ann", "favourites": [], "searches": []}
    assert not (place / bookmarks.BOOKMARKS_FILE).exists()
    hit = client.get("/api/v1/search", params={"q": "red"}).json()["hits"][0]
    body = {"person": "ann", "moment": hit["moment"], "query": "red"}
    for _ in range(2):  # keeping it again changes nothing
        [one] = client.put(f"{SHELF}/favourites", json=body).json()["favourites"]
    assert (one["name"], one["start"], one["end"], one["query"]) == (hit["name"], hit["start"], hit["end"], "red")
    assert client.get(one["thumbnail"]).status_code == 200
    [search] = client.put(f"{SHELF}/searches", json={"person": "ann", "query": "red"}).json()["searches"]
    assert kept(client, "bob")["favourites"] == []
    exported = client.get(f"{SHELF}/export", params={"person": "ann"})
    assert exported.json() == kept(client, "ann")
    assert "kept.json" in exported.headers["content-disposition"]
    for kind, id in (("favourites", one["id"]), ("searches", search["id"])):
        assert client.delete(f"{SHELF}/{kind}/{id}", params={"person": "bob"}, headers=HEADERS).status_code == 404
        left = client.delete(f"{SHELF}/{kind}/{id}", params={"person": "ann"}, headers=HEADERS).json()
        assert left[kind] == []


def test_a_favourite_outlives_its_file(serve: Callable[..., TestClient], place: Path, shared: Path) -> None:
    client = serve(place)
    hit = client.get("/api/v1/search", params={"q": "red"}).json()["hits"][0]
    client.put(f"{SHELF}/favourites", json={"person": "ann", "moment": hit["moment"]})
    with Library.open(place) as library:
        [path] = [video.path for video in library.videos() if video.id == hit["video_id"]]
        library.remove(path)
        assert kept(client, "ann")["favourites"][0]["video_id"] is None
        library.add(path)
    assert kept(client, "ann")["favourites"][0]["video_id"] is not None


def test_what_cannot_be_kept(serve: Callable[..., TestClient], place: Path, monkeypatch: Any) -> None:
    client = serve(place)
    for moment, status in (("99:0.000-1.000", 404), ("red", 422)):
        answer = client.put(f"{SHELF}/favourites", json={"person": "ann", "moment": moment})
        assert answer.status_code == status
    assert client.get(SHELF, params={"person": "a\nb"}).status_code == 422
    monkeypatch.setattr(bookmarks, "MAX_KEPT", 1)
    client.put(f"{SHELF}/searches", json={"person": "ann", "query": "red"})
    full = client.put(f"{SHELF}/searches", json={"person": "ann", "query": "blue"})
    assert (full.status_code, full.json()["error"]["code"]) == (409, "shelf_full")


def test_notes_tags_and_exports(serve: Callable[..., TestClient], place: Path, tmp_path: Path) -> None:
    client = serve(place)
    hit = client.get("/api/v1/search", params={"q": "red"}).json()["hits"][0]
    for start, end in ((0.5, 2.5), (1.0, 2.0)):
        moment = f"{hit['video_id']}:{start:.3f}-{end:.3f}"
        one = client.put(f"{SHELF}/favourites", json={"person": "ann", "moment": moment, "query": "red"}).json()
    newest = one["favourites"][0]["id"]
    body = {"person": "ann", "note": "the best, =1+1", "tags": ["opening", "blue sky", "opening"]}
    assert client.put(f"{SHELF}/favourites/{newest}", json={**body, "person": "bob"}).status_code == 404
    found = client.put(f"{SHELF}/favourites/{newest}", json=body).json()["favourites"]
    assert [(o["note"], o["tags"]) for o in found] == [("the best, =1+1", ["opening", "blue sky"]), ("", [])]

    def export(**given: str) -> httpx.Response:
        return client.get(f"{SHELF}/export", params={"person": "ann", **given})

    lines = export(kind="csv").text.splitlines()
    assert lines[0] == "name,start,end,query,note,tags"
    assert len(lines) == 3
    assert '1.000,2.000,red,"the best, =1+1","opening, blue sky"' in lines[1]
    edl = export(kind="edl", tag="opening").text
    assert edl.count("* FROM CLIP NAME") == 1
    assert "* COMMENT: the best, =1+1" in edl
    assert "<fcpxml" in export(kind="fcpxml").text
    (tmp_path / "clips.zip").write_bytes(export(kind="clips").content)
    with zipfile.ZipFile(tmp_path / "clips.zip") as archive:
        archive.extractall(tmp_path / "clips")
    lengths = sorted(probe(path).duration for path in (tmp_path / "clips").iterdir())
    assert lengths == pytest.approx([1.0, 2.0], abs=0.11)
    assert export(kind="clips", tag="nothing").status_code == 404


def test_favourites_of_an_earlier_version_get_room_for_notes(place: Path, serve: Callable[..., TestClient]) -> None:
    with closing(sqlite3.connect(place / bookmarks.BOOKMARKS_FILE)) as db, db:
        db.executescript("""
            CREATE TABLE favourites (id INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT NOT NULL, video TEXT NOT NULL,
              name TEXT NOT NULL, start DOUBLE NOT NULL, "end" DOUBLE NOT NULL, query TEXT NOT NULL,
              added DOUBLE NOT NULL, UNIQUE (person, video, start, "end"));
            CREATE TABLE searches (id INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT NOT NULL, query TEXT NOT NULL,
              settings TEXT NOT NULL, added DOUBLE NOT NULL, UNIQUE (person, query, settings));
            INSERT INTO favourites (person, video, name, start, "end", query, added)
              VALUES ('ann', 'gone', 'old.mp4', 1, 2, 'red', 3);
            PRAGMA user_version = 1;
        """)
    client = serve(place)
    [one] = kept(client, "ann")["favourites"]
    assert (one["name"], one["note"], one["tags"]) == ("old.mp4", "", [])
