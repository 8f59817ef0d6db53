"""Videos in object storage are fetched by the node that adds them; without Ray, whose part is to choose the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from s3_server import S3Server, serve_s3

from momentseek.cluster.adding import hash_files
from momentseek.cluster.shard_writer import ShardWriter, WriterSettings, known_states
from momentseek.cluster.sources import list_videos
from momentseek.library.file_stamp import content_hash
from momentseek.library.location import library_folder
from momentseek.library.opening import open_store
from momentseek.library.replicas.making import make_elsewhere
from momentseek.library.shards.split import make_shards
from momentseek.storage.address import open_file_system

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
    assert not [path for path in s3.objects if path.endswith("lease.json")]
    bucket.pipe("/films/red.mp4", b"other")
    assert known_states(shard, list_videos(FILMS, library_folder(ADDRESS)), None) == ["failed", "changed"]
    bucket.rm("/films/red.mp4")
    gone = ShardWriter(shard, WriterSettings(), "one add").add([file for file in files if file.name == "red.mp4"])
    assert "is not there" in gone.failed[0].reason
