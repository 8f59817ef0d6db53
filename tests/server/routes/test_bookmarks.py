"""What people keep: their own, for good, and to take along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from momentseek.api.library import Library
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
