from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.media.probe import probe
from momentseek.server.settings import Limits

MEDIA = "/api/v1/videos/1/media"


@pytest.fixture
def film(shared: Path) -> bytes:
    return (shared / "films" / "one.mp4").read_bytes()


@pytest.mark.parametrize(("header", "part"), [
    ("bytes=0-0", slice(0, 1)), ("bytes=100-199", slice(100, 200)), ("bytes=500-", slice(500, None)),
    ("bytes=-77", slice(-77, None)), ("bytes=10-99999999", slice(10, None)), ("bytes=-99999999", slice(0, None)),
])  # fmt: skip
def test_ranges_are_slices_of_the_file(client: TestClient, film: bytes, header: str, part: slice) -> None:
    answer = client.get(MEDIA, headers={"Range": header})
    first = range(len(film))[part][0]
    assert answer.status_code == 206
    assert answer.content == film[part]
    assert answer.headers["content-range"] == f"bytes {first}-{first + len(film[part]) - 1}/{len(film)}"
    assert answer.headers["content-length"] == str(len(film[part]))


@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=0-1,5-6"}, {"Range": "nonsense"}, {"Range": "bytes=9-3"}])
def test_else_the_whole_is_sent(client: TestClient, film: bytes, headers: dict[str, str]) -> None:
    answer = client.get(MEDIA, headers=headers)
    assert answer.status_code == 200
    assert answer.content == film
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-type"] == "video/mp4"


def test_outside_says_how_long_the_file_is(client: TestClient, film: bytes) -> None:
    answer = client.get(MEDIA, headers={"Range": f"bytes={len(film)}-"})
    assert answer.status_code == 416
    assert answer.headers["content-range"] == f"bytes */{len(film)}"
    assert answer.json()["error"]["code"] == "range_not_satisfiable"


def test_head_has_the_headers_only(client: TestClient, film: bytes) -> None:
    answer = client.head(MEDIA, headers={"Range": "bytes=0-9"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == str(len(film))


def test_a_part_of_another_version_is_not_mixed_in(client: TestClient, film: bytes) -> None:
    whole = client.get(MEDIA)
    wanted = {"Range": "bytes=5-9"}
    for same in (whole.headers["etag"], whole.headers["last-modified"]):
        assert client.get(MEDIA, headers={**wanted, "If-Range": same}).status_code == 206
    for other in ('"other"', f"W/{whole.headers['etag']}", "Thu, 01 Jan 1970 00:00:00 GMT"):
        answer = client.get(MEDIA, headers={**wanted, "If-Range": other})
        assert (answer.status_code, answer.content) == (200, film)


def test_a_copy_that_is_still_good_is_not_sent_again(client: TestClient) -> None:
    etag = client.get(MEDIA).headers["etag"]
    answer = client.get(MEDIA, headers={"If-None-Match": etag})
    assert (answer.status_code, answer.content) == (304, b"")


def test_names_cannot_break_out_of_a_header(client: TestClient, ids: dict[str, int]) -> None:
    [two] = [id for name, id in ids.items() if name.startswith("inner")]
    answer = client.get(f"/api/v1/videos/{two}/media")
    assert answer.headers["content-type"] == "video/webm"
    assert answer.headers["content-disposition"].startswith('inline; filename="two _b____.webm"; filename*=')


def test_a_file_that_is_gone_or_no_file_is_said_so(
    serve: Callable[..., TestClient], place: Path, tmp_path: Path
) -> None:
    gone, pipe = tmp_path / "gone.mp4", tmp_path / "pipe.mp4"
    os.mkfifo(pipe)
    with Library.open(place) as library, library.store.catalog.changes() as db:
        db.execute("UPDATE videos SET path = ? WHERE id = 1", (os.fsencode(gone),))
        db.execute("UPDATE videos SET path = ? WHERE id = 2", (os.fsencode(pipe),))
    client = serve(place)
    for id, code in ((1, (404, "file_missing")), (2, (409, "file_changed"))):
        assert not client.get(f"/api/v1/videos/{id}").json()["available"]
        for path in ("media", "thumbnail?t=2"):
            answer = client.get(f"/api/v1/videos/{id}/{path}")
            assert (answer.status_code, answer.json()["error"]["code"]) == code
            assert str(tmp_path) not in answer.text
        answer = client.post(f"/api/v1/videos/{id}/clip", json={"start": 1, "end": 2})
        assert answer.status_code == code[0]


def test_streams_are_bounded_and_given_back(serve: Callable[..., TestClient]) -> None:
    client = serve(limits=Limits(streams=1))
    for _ in range(5):
        assert client.get(MEDIA).status_code == 200
        assert client.get("/api/v1/videos/99/media").status_code == 404
        assert client.get(MEDIA, headers={"Range": "bytes=99999999-"}).status_code == 416
    streams = client.app.state.service.streams  # type: ignore[attr-defined]
    assert not streams
    for other in ("192.0.2.7", "testclient"):
        streams[other] += 1
        answer = client.get(MEDIA)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        del streams[other]


@pytest.mark.parametrize(
    ("asked", "seconds"), [({"start": 1, "end": 3.5}, 2.5), ({"start": 2, "end": 3, "pad": 0.5}, 2)]
)
def test_a_clip_has_the_length_asked_for(
    client: TestClient, tmp_path: Path, asked: dict[str, float], seconds: float
) -> None:
    answer = client.post("/api/v1/videos/1/clip", json=asked)
    assert answer.headers["content-type"] == "video/mp4"
    assert answer.headers["content-disposition"].startswith("attachment;")
    (tmp_path / "clip.mp4").write_bytes(answer.content)
    assert probe(tmp_path / "clip.mp4").duration == pytest.approx(seconds, abs=0.11)


@pytest.mark.parametrize("asked", [
    {"start": 3, "end": 1}, {"start": 1, "end": 1}, {"start": -1, "end": 1}, {"start": 0, "end": 9000},
    {"start": 50, "end": 51}, {"start": 0}, {"start": 0, "end": 1, "out": "/etc/x"}, {"start": "NaN", "end": 1},
])  # fmt: skip
def test_impossible_clips_are_refused(client: TestClient, asked: dict[str, object]) -> None:
    answer = client.post("/api/v1/videos/1/clip", json=asked)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")


@pytest.mark.parametrize(("start", "end"), [(1.0, 1.001), (1.0, 1.09), (11.95, 20.0)])
def test_a_clip_without_a_frame_is_said_so(client: TestClient, start: float, end: float) -> None:
    answer = client.post("/api/v1/videos/1/clip", json={"start": start, "end": end})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == "a clip has at least one frame (0.100 s); choose a later end"
    assert client.post("/api/v1/videos/1/clip", json={"start": 1.0, "end": 1.1}).status_code == 200


def test_errors_of_files_do_not_contain_their_folder(
    serve: Callable[..., TestClient], place: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "my films" / "broken.mp4"
    broken.parent.mkdir()
    broken.write_bytes(b"no video at all")
    values = (os.fsencode(broken), broken.stat().st_size, broken.stat().st_mtime_ns)
    with Library.open(place) as library, library.store.catalog.changes() as db:
        db.execute("UPDATE videos SET path = ?, size = ?, mtime_ns = ? WHERE id = 1", values)
    client = serve(place)
    for answer in (
        client.get("/api/v1/videos/1/thumbnail?t=2.3"),
        client.post("/api/v1/videos/1/clip", json={"start": 1, "end": 2}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "unusable_file")
        assert answer.json()["error"]["message"].startswith("broken.mp4: ")
        assert "films" not in answer.text
        assert tmp_path.name not in answer.text


@pytest.mark.parametrize("tag", ["*", '"x"'])
def test_a_clip_is_made_whatever_the_client_has(client: TestClient, tag: str) -> None:
    asked = {"start": 1, "end": 2}
    answer = client.post("/api/v1/videos/1/clip", json=asked, headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert len(answer.content) > 100


def test_clips_leave_nothing_behind(client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert client.post("/api/v1/videos/1/clip", json={"start": 1, "end": 2}).status_code == 200
    assert list(tmp_path.glob("momentseek-*")) == []
