"""Videos in object storage are fetched by the node that adds them; without Ray, whose part is to choose the node."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from s3_server import S3Server, serve_s3

from momentseek.api.library import open_store
from momentseek.cluster.adding import hash_files
from momentseek.cluster.shard_writer import ShardWriter, WriterSettings, known_states, list_videos
from momentseek.cluster.shards.making import make_elsewhere, make_shards
from momentseek.cluster.storage.address import StoreUnreachableError, open_file_system
from momentseek.cluster.storage.mirror import Mirror
from momentseek.library.file_stamp import content_hash
from momentseek.library.location import library_folder

ADDRESS, FILMS = "s3://bucket/lib", "memory://films"
pytest.importorskip("obstore")
pytest.importorskip("av")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3Server]:
    monkeypatch.setenv("MOMENTSEEK_CACHE", str(tmp_path / "cache"))
    with serve_s3(monkeypatch, "bucket") as server:
        yield server


@pytest.fixture
def bucket(make_video: Callable[..., Path], tmp_path: Path) -> Iterator[Any]:
    """A film and a file that is none, in memory."""
    made = make_video(tmp_path / "red.mp4", [(1.5, (220, 20, 20))], rate=4, size=(48, 32))
    system, _ = open_file_system(FILMS)
    system.pipe({"/films/red.mp4": made.read_bytes(), "/films/bad.mp4": b"no film"})
    yield system
    system.rm("/films", recursive=True)


def test_videos_elsewhere_are_added_to_a_library_elsewhere(s3: S3Server, bucket: Any, tmp_path: Path) -> None:
    make_elsewhere(ADDRESS, lambda into: make_shards(into, 2))
    shard = f"{ADDRESS}/shard-001"
    files = list_videos(FILMS, library_folder(ADDRESS))
    assert [(file.name, file.path.exists()) for file in files] == [("bad.mp4", False), ("red.mp4", False)]
    assert known_states(shard, files, None) == ["", ""]
    assert hash_files(files, shard)[1] == content_hash(tmp_path / "red.mp4")
    report = ShardWriter(shard, WriterSettings(), "one add").add(files)
    assert (report.added, [failure.path.name for failure in report.failed]) == (1, ["bad.mp4"])
    for file in files:
        file.path.unlink()
    assert known_states(shard, files, None) == ["failed", "unchanged"], "what is known need not be fetched again"
    with open_store(ADDRESS) as opened:
        assert [video.name for video in opened.videos()] == ["red.mp4"]
    assert not [path for path, data in s3.objects.items() if path.endswith("state.json") and b"lease" in data]
    bucket.pipe("/films/red.mp4", b"other")
    assert known_states(shard, list_videos(FILMS, library_folder(ADDRESS)), None) == ["failed", "changed"]
    bucket.rm("/films/red.mp4")
    gone = ShardWriter(shard, WriterSettings(), "one add").add([file for file in files if file.name == "red.mp4"])
    assert "does not exist" in gone.failed[0].reason


def test_a_server_shows_videos_that_only_nodes_have_fetched(
    s3: S3Server, make_video: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastapi.testclient import TestClient

    from momentseek.server.app import create_app

    film = make_video(tmp_path / "red.mp4", [(1.5, (220, 20, 20))], rate=4, size=(48, 32)).read_bytes()
    s3.objects["bucket/films/red.mp4"] = film
    make_elsewhere(ADDRESS, lambda into: make_shards(into, 1))
    monkeypatch.setenv("MOMENTSEEK_CACHE", str(tmp_path / "node"))
    files = list_videos("s3://bucket/films", library_folder(ADDRESS))
    assert ShardWriter(f"{ADDRESS}/shard-000", WriterSettings(), "one add").add(files).added == 1
    again = list_videos("s3://bucket/films", library_folder(ADDRESS))
    assert known_states(f"{ADDRESS}/shard-000", again, None) == ["unchanged"]
    shutil.rmtree(tmp_path / "node")
    s3.calls.clear()
    monkeypatch.setenv("MOMENTSEEK_CACHE", str(tmp_path / "server"))
    with open_store(ADDRESS) as opened:
        assert (opened.status().missing, opened.matching([], missing=True)) == (0, [])
        (id,) = (video.id for video in opened.videos())
    with TestClient(create_app(library_folder(ADDRESS)), base_url="http://localhost") as client:
        at = f"/api/v1/videos/{id}"
        assert client.get(at).json()["available"]
        monkeypatch.setattr("momentseek.server.routes.media.MAX_PICTURED_BYTES", len(film) - 1)
        told = client.get(f"{at}/thumbnail", params={"t": 0.5, "w": 160})
        assert (told.status_code, "play it once" in told.text) == (409, True)
        assert ("GET", "bucket/films/red.mp4") not in s3.calls
        played = client.get(f"{at}/media", headers={"Range": "bytes=0-99"})
        assert (played.status_code, played.content) == (206, film[:100])
        assert client.get(f"{at}/thumbnail", params={"t": 0.5, "w": 160}).status_code == 200
        assert client.post(f"{at}/clip", json={"start": 0, "end": 1}).content[4:8] == b"ftyp"
        assert s3.calls.count(("GET", "bucket/films/red.mp4")) == 1, "it is fetched once"
        shutil.rmtree(tmp_path / "server" / "s3%3A%2F%2Fbucket%2Flib-sources")
        s3.objects["bucket/films/red.mp4"] = b"another film"
        assert client.get(f"{at}/media").status_code == 409
        del s3.objects["bucket/films/red.mp4"]
        shutil.rmtree(tmp_path / "server" / "s3%3A%2F%2Fbucket%2Flib-sources")
        gone = client.get(f"{at}/media")
        assert (gone.status_code, gone.json()["error"]["message"].count("does not exist")) == (409, 1)


def test_storage_that_does_not_answer_is_no_fault_of_a_video(
    s3: S3Server, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_elsewhere(ADDRESS, lambda into: make_shards(into, 2))
    shard, files = f"{ADDRESS}/shard-001", list_videos(FILMS, library_folder(ADDRESS))
    writer = ShardWriter(shard, WriterSettings(), "one add")

    def fetch(*_: object) -> None:
        raise StoreUnreachableError("the cable is cut")

    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "fetch", fetch)
        with pytest.raises(StoreUnreachableError):
            hash_files(files, shard)
        with pytest.raises(StoreUnreachableError):
            writer.add(files)
    report = writer.add(files)
    assert (report.added, [failure.path.name for failure in report.failed]) == (1, ["bad.mp4"])
