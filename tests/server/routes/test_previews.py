"""Previews: what a browser cannot play is made playable, once for everybody, and within bounds."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.library.video import Video
from momentseek.media.probe import probe
from momentseek.server import previews
from momentseek.server.previews import Previews

RED, BLUE = (220, 20, 20), (20, 20, 220)


@pytest.fixture(scope="session")
def odd_films(tmp_path_factory: pytest.TempPathFactory, make_video: Callable[..., Path]) -> Path:
    """Films that Chromium does not play."""
    folder = tmp_path_factory.mktemp("odd").resolve()
    scenes = [(1.5, RED), (1.5, BLUE)]
    make_video(folder / "old.avi", scenes, rate=10, size=(96, 64), codec="mpeg4", audio="mp3")
    options = {"preset": "ultrafast", "x265-params": "log-level=none"}
    make_video(folder / "new.mp4", scenes, rate=10, size=(96, 64), codec="libx265", options=options, audio=True)
    return folder


@pytest.fixture
def odd_place(tmp_path: Path, light: None, odd_films: Path) -> Path:
    """A library with them."""
    with Library.open(tmp_path / "library", create=True, encoder="colours") as library:
        assert library.add(odd_films).added == 2
    return tmp_path / "library"


def _ids(place: Path) -> dict[str, int]:
    with Library.open(place) as library:
        return {video.name: video.id for video in library.videos()}


def _await_preview(client: TestClient, id: int) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while True:
        answer = client.post(f"/api/v1/videos/{id}/preview", json={})
        assert answer.status_code == 200
        state: dict[str, Any] = answer.json()
        if state["state"] in ("ready", "failed"):
            return state
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_avi_and_hevc_become_h264_in_mp4_with_ranges(
    serve: Callable[..., TestClient], odd_place: Path, tmp_path: Path
) -> None:
    client = serve(odd_place)
    for name, id in _ids(odd_place).items():
        address = f"/api/v1/videos/{id}/preview"
        missing = client.get(address)
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "no_preview")
        state = _await_preview(client, id)
        assert state == {"state": "ready", "progress": 1.0, "error": "", "preview": address}
        whole = client.get(address)
        assert whole.headers["Content-Type"] == "video/mp4"
        (tmp_path / "got.mp4").write_bytes(whole.content)
        found = probe(tmp_path / "got.mp4")
        assert (found.codec, found.format, found.audio) == ("h264", "mov", True), name
        assert (found.width, found.height) == (96, 64)
        assert found.duration == pytest.approx(3.0, abs=0.11)
        part = client.get(address, headers={"Range": "bytes=10-19", "If-Range": whole.headers["ETag"]})
        assert (part.status_code, part.content) == (206, whole.content[10:20])
        assert part.headers["Content-Range"] == f"bytes 10-19/{len(whole.content)}"
        assert client.get(address, headers={"Range": f"bytes={len(whole.content)}-"}).status_code == 416
        assert client.head(address).headers["Content-Length"] == str(len(whole.content))
        assert client.get(address, headers={"If-None-Match": whole.headers["ETag"]}).status_code == 304
    original = client.get(f"/api/v1/videos/{_ids(odd_place)['old.avi']}/media").content
    assert original.startswith(b"RIFF")
    assert sorted(p.suffix for p in (odd_place / "previews").iterdir()) == [".mp4", ".mp4"]


def test_a_file_that_cannot_be_decoded_is_said_so(
    serve: Callable[..., TestClient], odd_place: Path, odd_films: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "films" / "broken.avi"
    copy.parent.mkdir()
    copy.write_bytes(b"RIFF\0\0\0\0AVI nothing")
    id = _ids(odd_place)["old.avi"]
    state = copy.stat()
    with Library.open(odd_place) as library, library.store.catalog.changes() as db:
        values = (os.fsencode(copy), state.st_size, state.st_mtime_ns, id)
        db.execute("UPDATE videos SET path = ?, size = ?, mtime_ns = ? WHERE id = ?", values)
    client = serve(odd_place)
    said = _await_preview(client, id)
    assert said["state"] == "failed"
    assert said["error"].startswith("broken.avi: ")
    assert str(tmp_path) not in said["error"]
    assert list((odd_place / "previews").iterdir()) == []
    assert client.post("/api/v1/videos/99/preview", json={}).status_code == 404
    copy.unlink()
    assert client.post(f"/api/v1/videos/{id}/preview", json={}).status_code == 404


@pytest.fixture
def video(odd_place: Path) -> Video:
    with Library.open(odd_place) as library:
        return next(video for video in library.videos() if video.name == "old.avi")


class Fates(list[str]):
    """What became of each preview, and how many steps one takes."""

    steps = 50


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Fates:
    """Previews of a hundred bytes that take a second or longer."""
    fates = Fates()

    def preview(file: Any, out: Path) -> Iterator[float]:
        fates.append("begun")
        try:
            for step in range(fates.steps):
                out.write_bytes(bytes(100))
                yield step / fates.steps
                time.sleep(0.02)
            fates[-1] = "made"
        finally:
            fates[-1] = "dropped" if fates[-1] == "begun" else fates[-1]

    monkeypatch.setattr("momentseek.server.previews.preview", preview)
    return fates


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_who_ask_get_one_and_the_last_to_leave_ends_it(
    tmp_path: Path, video: Video, slow: Fates, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Previews(tmp_path / "previews", 1, 5, 1000)
    first, second = kept.ask(video), kept.ask(video)
    assert first is second
    _until(lambda: kept.ask(video).state == "ready")
    assert slow == ["made"]
    assert kept.find(video) is not None
    monkeypatch.setattr(previews, "LEASE_SECONDS", 2.0)
    slow.steps = 10_000
    other = replace(video, id=77)
    begun = kept.ask(other)
    _until(lambda: begun.progress > 0)
    _until(lambda: slow[-1] == "dropped")  # nobody asks any more
    assert kept.find(other) is None
    kept.close()
    assert os.listdir(tmp_path / "previews") == [os.path.basename(str(kept.find(video)))]


def test_few_are_made_at_a_time_and_few_wait(tmp_path: Path, video: Video, slow: Fates) -> None:
    slow.steps = 10_000
    kept = Previews(tmp_path / "previews", 1, 1, 1000)
    jobs = [kept.ask(replace(video, id=n)) for n in (1, 2)]
    with pytest.raises(previews.ApiError, match="too many previews"):
        kept.ask(replace(video, id=3))
    _until(lambda: jobs[0].state == "making")
    assert jobs[1].state == "waiting"
    kept.close()
    assert slow == ["dropped"]
    with pytest.raises(previews.ApiError, match="stopping"):
        kept.ask(replace(video, id=4))


def test_the_previews_used_longest_ago_make_room(tmp_path: Path, video: Video, slow: Fates) -> None:
    kept = Previews(tmp_path / "previews", 3, 5, 250)
    one, two, three = (replace(video, id=n) for n in (1, 2, 3))
    for wanted in (one, two):
        _until(lambda wanted=wanted: kept.ask(wanted).state == "ready")  # type: ignore[misc]
    assert kept.find(one) is not None  # used again, so the other is the oldest
    _until(lambda: kept.ask(three).state == "ready")
    assert [kept.find(v) is not None for v in (one, two, three)] == [True, False, True]
    large = Previews(tmp_path / "small", 1, 5, 99)
    _until(lambda: large.ask(one).state == "failed")
    assert "too long for a preview" in large.ask(one).error
    for each in (kept, large):
        each.close()


def test_a_crash_of_the_codec_is_the_previews_failure(
    tmp_path: Path, video: Video, misbehave: Callable[[str], None]
) -> None:
    misbehave("if name.endswith('old.avi'): __import__('os').abort()")
    kept = Previews(tmp_path / "previews", 1, 5, 10**9)
    _until(lambda: kept.ask(video).state == "failed")
    assert "crashes the decoder (SIGABRT)" in kept.ask(video).error
    kept.close()
    shutil.rmtree(tmp_path / "previews")
