"""Links lead nowhere: not while a folder is listed or added, and not in the place of a video that was added."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library

SECRET = "the secret of the owner"


@pytest.fixture
def world(shared: Path, tmp_path: Path, light: None) -> Path:
    """``films/one.mp4`` in ``library``, and ``outside/`` with another film, its subtitles and a secret."""
    (tmp_path / "films").mkdir()
    (tmp_path / "outside").mkdir()
    for name in ("one.mp4", "one.srt"):
        shutil.copy2(shared / "films" / name, tmp_path / "films" / name)
    shutil.copy2(shared / "more" / "three.mp4", tmp_path / "outside" / "three.mp4")
    (tmp_path / "outside" / "secret.srt").write_text(f"1\n00:00:01,000 --> 00:00:02,000\n{SECRET}\n")
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    with Library.open(tmp_path / "library", create=True, encoder="colours") as library:
        library.add(tmp_path / "films")
    return tmp_path.resolve()


def _add_all(client: TestClient) -> dict[str, Any]:
    """Add the first folder that can be added, and wait for the end of it."""
    folder = client.get("/api/v1/folders").json()["folders"][0]["id"]
    job = client.post("/api/v1/jobs", json={"folder": folder}).json()
    until = time.monotonic() + 120
    while job["state"] in ("waiting", "running") and time.monotonic() < until:
        time.sleep(0.02)
        job = client.get(f"/api/v1/jobs/{job['id']}").json()
    assert job["state"] == "done", job
    return dict(job)


def _names(client: TestClient) -> list[str]:
    return [video["name"] for video in client.get("/api/v1/videos").json()["videos"]]


def test_adding_a_folder_follows_no_link_out_of_it(serve: Callable[..., TestClient], world: Path) -> None:
    films = world / "films"
    (films / "file.mp4").symlink_to(world / "outside" / "three.mp4")
    (films / "folder").symlink_to(world / "outside", target_is_directory=True)
    client = serve(world / "library", folders=(films,))
    listed = client.get("/api/v1/folders").json()["folders"][0]
    assert (listed["videos"], client.get(f"/api/v1/folders/{listed['id']}").json()["folders"]) == (1, [])
    assert _add_all(client)["added"] == 0
    assert _names(client) == ["one.mp4"]


def test_subtitles_that_are_links_are_not_read(serve: Callable[..., TestClient], world: Path, shared: Path) -> None:
    films = world / "films"
    shutil.copy2(shared / "more" / "three.mp4", films / "two.mp4")
    (films / "two.srt").symlink_to(world / "outside" / "secret.srt")
    client = serve(world / "library", folders=(films,))
    assert _add_all(client)["added"] == 1
    two = next(video for video in client.get("/api/v1/videos").json()["videos"] if video["name"] == "two.mp4")
    assert (two["cues"], client.get(f"/api/v1/videos/{two['id']}/cues").json()) == (0, {"cues": [], "heard_by": None})
    assert ["two.srt" in note and str(world) not in note for note in two["notes"]] == [True]
    with Library.open(world / "library") as library:
        assert library.add(films).refreshed == 1  # whoever owns the machine may use links
    assert SECRET in client.get(f"/api/v1/videos/{_id(client, 'two.mp4')}/cues").text
    _add_all(client)
    assert SECRET in client.get(f"/api/v1/videos/{_id(client, 'two.mp4')}/cues").text  # and the page leaves it so


def _id(client: TestClient, name: str) -> int:
    return next(video["id"] for video in client.get("/api/v1/videos").json()["videos"] if video["name"] == name)


def test_a_failure_that_became_a_link_is_not_followed(serve: Callable[..., TestClient], world: Path) -> None:
    films = world / "films"
    (films / "broken.mp4").write_bytes(b"no video")
    client = serve(world / "library", folders=(films,))
    _add_all(client)
    (films / "broken.mp4").unlink()
    (films / "broken.mp4").symlink_to(world / "outside" / "three.mp4")
    job = client.post("/api/v1/jobs/retry", json={}).json()
    while job["state"] in ("waiting", "running"):
        time.sleep(0.02)
        job = client.get(f"/api/v1/jobs/{job['id']}").json()
    assert (job["added"], len(job["failed"]), _names(client)) == (0, 1, ["one.mp4"])


REPLACEMENTS = ("link", "folder", "other", "same size")


def _replace(film: Path, outside: Path, how: str) -> None:
    """Put something else in a film's place."""
    if how == "folder":
        film.parent.rename(film.parent.with_name("away"))
        shutil.copy2(outside / "three.mp4", outside / film.name)
        film.parent.symlink_to(outside, target_is_directory=True)
    elif how == "same size":
        size = film.stat().st_size
        film.write_bytes((SECRET * (size // len(SECRET) + 1)).encode()[:size])
    else:
        film.unlink()
        film.symlink_to(outside / "secret.txt") if how == "link" else shutil.copy2(outside / "three.mp4", film)


@pytest.mark.parametrize("how", REPLACEMENTS)
def test_file_changed_since_it_was_added_is_not_served(serve: Callable[..., TestClient], world: Path, how: str) -> None:
    client = serve(world / "library")
    assert client.get("/api/v1/videos/1").json()["available"]
    _replace(world / "films" / "one.mp4", world / "outside", how)
    assert not client.get("/api/v1/videos/1").json()["available"]
    for answer in (
        client.get("/api/v1/videos/1/media"),
        client.head("/api/v1/videos/1/media"),
        client.get("/api/v1/videos/1/media", headers={"Range": "bytes=0-9"}),
        client.get("/api/v1/videos/1/thumbnail?t=3"),
        client.post("/api/v1/videos/1/clip", json={"start": 1, "end": 2}),
    ):
        assert answer.status_code == 409
        assert answer.request.method == "HEAD" or answer.json()["error"]["code"] == "file_changed"
        assert SECRET not in answer.text
        assert str(world) not in answer.text
    page = client.post("/api/v1/export", json={"kind": "html", "hits": [{"video_id": 1, "start": 1, "end": 2}]})
    assert page.status_code == 200
    assert "data:image" not in page.text


def test_a_film_that_flickers_is_served_as_itself_or_not_at_all(serve: Callable[..., TestClient], world: Path) -> None:
    """Between any check and any opening, a link to a secret takes the film's place and leaves it again."""
    film, kept = world / "films" / "one.mp4", world / "films" / "kept"
    whole = film.read_bytes()
    stop = threading.Event()

    def flicker() -> None:
        while not stop.is_set():
            film.rename(kept)
            film.symlink_to(world / "outside" / "secret.txt")
            film.unlink()
            kept.rename(film)

    client = serve(world / "library")
    thread = threading.Thread(target=flicker)
    thread.start()
    statuses = set()
    try:
        for n in range(60):
            answer = client.get("/api/v1/videos/1/media" if n % 3 else f"/api/v1/videos/1/thumbnail?t={n / 50}")
            statuses.add(answer.status_code)
            assert answer.status_code in (200, 404, 409)
            assert SECRET not in answer.text
            if answer.status_code == 200 and n % 3:
                assert answer.content == whole
    finally:
        stop.set()
        thread.join()
    assert statuses - {200}


def test_a_folder_that_became_a_link_is_not_listed(serve: Callable[..., TestClient], world: Path) -> None:
    films = world / "films"
    (films / "inner").mkdir()
    client = serve(world / "library", folders=(films,))
    top = client.get("/api/v1/folders").json()["folders"][0]["id"]
    inner = client.get(f"/api/v1/folders/{top}").json()["folders"][0]["id"]
    (films / "inner").rmdir()
    (films / "inner").symlink_to(world / "outside", target_is_directory=True)
    assert client.get(f"/api/v1/folders/{inner}").status_code == 404
    assert client.post("/api/v1/jobs", json={"folder": inner}).status_code == 404


def test_a_video_whose_folder_moved_behind_a_link_is_found_again(world: Path) -> None:
    (world / "films").rename(world / "disk")
    os.symlink(world / "disk", world / "films")
    with Library.open(world / "library") as library:
        report = library.add(world / "films")
        assert (report.moved, [video.path for video in library.videos()]) == (1, [world / "disk" / "one.mp4"])
