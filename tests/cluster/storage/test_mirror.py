"""Files elsewhere are fetched once, again when they change, and refused in a sentence."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from momentseek.cluster.storage.address import explain, open_file_system
from momentseek.cluster.storage.mirror import Mirror, RemoteFile, list_files
from momentseek.core.errors import MomentseekError

VIDEOS = frozenset({".mp4"})
pytest.importorskip("fsspec")


@pytest.fixture
def bucket() -> Iterator[Any]:
    """A file system in memory."""
    system, _ = open_file_system("memory://films")
    system.pipe({"/films/a.mp4": b"one", "/films/in/b.MP4": b"two", "/films/notes.txt": b"no"})
    yield system
    system.rm("/films", recursive=True)


def test_videos_are_listed_at_any_depth(bucket: Any) -> None:
    assert [file.path for file in list_files("memory://films", VIDEOS)] == ["/films/a.mp4", "/films/in/b.MP4"]
    assert [file.path for file in list_files("memory://films/notes.txt", VIDEOS)] == ["/films/notes.txt"]


def test_a_file_is_fetched_once_and_again_when_it_changes(bucket: Any, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path)
    told: list[int] = []
    first = list_files("memory://films/a.mp4", VIDEOS)[0]
    path = mirror.fetch("memory://films/a.mp4", first, told.append)
    assert (path, path.read_bytes(), told) == (tmp_path / "films" / "a.mp4", b"one", [3])
    mirror.fetch("memory://films/a.mp4", first, told.append)
    assert told == [3], "it is there"
    bucket.pipe("/films/a.mp4", b"new")
    second = list_files("memory://films/a.mp4", VIDEOS)[0]
    assert mirror.fetch("memory://films/a.mp4", second).read_bytes() == b"new"
    assert sorted(one.name for one in path.parent.iterdir()) == [".a.mp4.mark", "a.mp4"]


def test_a_file_that_changed_meanwhile_leaves_nothing(bucket: Any, tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="changed while"):
        Mirror(tmp_path).fetch("memory://films", RemoteFile("/films/a.mp4", 99, ""))
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


@pytest.mark.parametrize("path", ["../a.mp4", "films/../../a.mp4", "/"])
def test_a_name_cannot_leave_the_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(MomentseekError, match="rename"):
        Mirror(tmp_path).path_of(RemoteFile(path, 1, ""))


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("memory://nothing", "does not exist"),
        ("s3://", "names no bucket"),
        ("nosuch://bucket/a", "cannot be opened here"),
    ],
)
def test_a_wrong_address_is_refused_in_a_sentence(address: str, told: str) -> None:
    with pytest.raises(MomentseekError, match=told):
        list_files(address, VIDEOS)


def test_a_bucket_without_permission_is_refused_in_a_sentence() -> None:
    assert "may not be read" in str(explain("s3://films", PermissionError("AccessDenied")))
    assert "may not be read" in str(explain("s3://films", OSError("Client error with status 403 Forbidden")))


def test_videos_of_a_bucket_are_added(
    bucket: Any, momentseek: Callable[..., Any], make_video: Callable[..., Path], tmp_path: Path
) -> None:
    pytest.importorskip("av")
    made = make_video(tmp_path / "red.mp4", [(1.5, (220, 20, 20))], rate=4, size=(48, 32))
    bucket.pipe("/films/red.mp4", made.read_bytes())
    where = tmp_path / "library"
    result = momentseek("add", "memory://films/red.mp4", "--library", f"{where}", "--no-transcribe")
    assert result.returncode == 0, result.stderr
    assert "1 video added" in result.stderr
    assert (tmp_path / "library-sources" / "films" / "red.mp4").is_file()
    again = momentseek("add", "memory://films/red.mp4", "--library", f"{where}", "--no-transcribe")
    assert "1 video unchanged" in again.stderr
    missing = momentseek("add", "memory://elsewhere", "--library", f"{where}")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


@pytest.mark.figures
def test_a_server_that_speaks_s3(moto: str, tmp_path: Path) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{moto}/films", method="PUT")).close()
    system, _ = open_file_system("s3://films/in")
    content = os.urandom(9 << 20)  # more than one read
    for name in ("films/in/a.mp4", "films/in/deep/ü b.mp4", "films/out.mp4"):
        with system.open(name, "wb") as file:
            file.write(content)
    files = list_files("s3://films/in", VIDEOS)
    assert [file.path for file in files] == ["films/in/a.mp4", "films/in/deep/ü b.mp4"]
    mirror = Mirror(tmp_path)
    for file in files:
        assert mirror.fetch("s3://films/in", file).read_bytes() == content
        assert mirror.has(file)
    for address in ("s3://nobucket/films", "s3://films/nothing"):
        with pytest.raises(MomentseekError, match="does not exist"):
            list_files(address, VIDEOS)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("az://box/films", "no credentials were found; set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"),
        ("gcs://box/films", "install gcsfs"),
        ("nowhere://box/films", "nowhere:// cannot be opened here"),
    ],
)
def test_storage_without_setup_reports_what_is_missing(address: str, told: str) -> None:
    with pytest.raises(MomentseekError) as refused:
        list_files(address, frozenset({".mp4"}))
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
