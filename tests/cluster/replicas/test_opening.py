"""A library in object storage is searched as the same library in a folder is, and fetched once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from s3_server import S3Server

from momentseek.api.library import open_store
from momentseek.cluster.manifest import ShardManifest
from momentseek.cluster.shards.making import make_elsewhere, make_shards, split_library
from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.library.location import library_folder
from momentseek.media.subtitles.cues import Cue

pytest.importorskip("fsspec")
pytest.importorskip("obstore")
ADDRESS = "s3://films/lib"


def send(source: Path, shards: int = 2, address: str = ADDRESS) -> ShardManifest:
    return make_elsewhere(address, lambda into: split_library(source, into, shards))


def test_a_library_elsewhere_is_read_like_one_here(s3: S3Server, whole: Path) -> None:
    send(whole)
    with open_store(ADDRESS) as there, open_store(whole) as here:
        assert there.videos() == here.videos()
        assert there.catalog.cues(4) == [Cue(0.0, 1.0, "hello")]
        assert (there.status().clips, there.status().cues) == (here.status().clips, 1)
        assert there.verify().problems == []
        assert there.path == library_folder(ADDRESS)


def test_vectors_are_fetched_when_they_are_needed_and_once(s3: S3Server, whole: Path) -> None:
    send(whole)
    open_store(ADDRESS).close()
    folder = library_folder(ADDRESS)
    assert not list(folder.glob("*/segments/*.vec")), "a list of videos needs no vectors"
    with open_store(ADDRESS) as there:
        for shard in there.catalog.parts:
            assert shard.path.is_file()
        rows = sum(one.snapshot().vision[0].rows for one in there.shards)  # type: ignore[attr-defined]
        assert rows == there.status().clips
    s3.calls.clear()
    with open_store(ADDRESS) as there:
        for one in there.shards:  # type: ignore[attr-defined]
            one.snapshot()
    assert sorted(path.rpartition("/")[2] for _, path in s3.calls) == ["shards.json", "state.json", "state.json"]
    cut = next(folder.glob("*/segments/*.vec"))
    cut.write_bytes(cut.read_bytes()[:-1])
    with open_store(ADDRESS) as there:
        for one in there.shards:  # type: ignore[attr-defined]
            one.snapshot()
        assert there.verify().problems == []


@pytest.mark.parametrize("damage", ["gone", "empty", "cut short", "garbage"])
def test_a_catalog_that_is_lost_here_is_fetched_again(s3: S3Server, whole: Path, damage: str) -> None:
    send(whole)
    with open_store(ADDRESS) as there:
        want = there.videos()
    for path in library_folder(ADDRESS).glob("*/catalog.sqlite"):
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes({"empty": b"", "cut short": path.read_bytes()[:12], "garbage": bytes(9000)}[damage])
    with open_store(ADDRESS) as there:
        assert there.videos() == want
        assert there.verify().problems == []


def test_a_catalog_that_is_damaged_here_is_to_be_deleted_not_made_again(s3: S3Server, whole: Path) -> None:
    send(whole)
    open_store(ADDRESS).close()
    folder = next(library_folder(ADDRESS).glob("shard-*"))
    path = folder / "catalog.sqlite"
    path.write_bytes(path.read_bytes()[:4096] + bytes(9) * 4096)
    with pytest.raises(LibraryError, match="is damaged") as raised:
        open_store(ADDRESS).videos()
    assert str(raised.value).endswith(f"delete the folder {folder}, which is fetched again from where it is kept")


def test_what_is_damaged_on_the_way_is_refused(s3: S3Server, whole: Path) -> None:
    send(whole)
    for path, data in s3.objects.items():
        if "/objects/" in path:
            s3.objects[path] = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(LibraryError, match="not those that were written"):
        open_store(ADDRESS)


def test_what_is_wrong_is_one_sentence(s3: S3Server, whole: Path, momentseek: Callable[..., Any]) -> None:
    def told(address: str = ADDRESS) -> str:
        result = momentseek("status", "--library", address)
        assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
        return str(result.stderr)

    assert f"has no library; make one with: momentseek shard {ADDRESS} --shards 8" in told()
    assert "s3://nobucket/lib: the bucket does not exist; check its name" in told("s3://nobucket/lib")
    assert "names no bucket" in told("s3://")
    assert "a library cannot lie in sftp://, which has no conditional writes" in told("sftp://films/lib")
    s3.objects["films/plain/catalog.sqlite"] = b"SQLite"
    assert "is not in shards" in told("s3://films/plain")
    send(whole)
    with pytest.raises(MomentseekError, match="already exists"):
        send(whole)
    s3.forbidden = "lib"
    assert "may not be read or written with these credentials" in told()
    s3.forbidden = None
    state = s3.objects.pop("films/lib/shard-001/state.json")
    assert "s3://films/lib: the shard shard-001 is missing" in told()
    s3.objects["films/lib/shard-001/state.json"] = json.dumps({**json.loads(state), "version": 2}).encode()
    assert "of another release (version 2); update momentseek" in told()
    s3.objects["films/lib/shard-001/state.json"] = b"{}"
    assert "is not the state of a shard" in told()
    manifest = json.loads(s3.objects["films/lib/shards.json"])
    s3.objects["films/lib/shards.json"] = json.dumps({**manifest, "version": 9}).encode()
    assert "of another release (version 9); update momentseek" in told()


def test_missing_credentials_are_one_sentence(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(MomentseekError, match="no credentials were found"):
        open_store(ADDRESS)


def test_an_empty_one_is_made_by_the_command(s3: S3Server, momentseek: Callable[..., Any]) -> None:
    result = momentseek("shard", ADDRESS, "--shards", 3, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "library": ADDRESS, "shards": {"shard-000": 0, "shard-001": 0, "shard-002": 0},
    }  # fmt: skip
    shown = momentseek("status", "--library", ADDRESS)
    assert f"library   {ADDRESS}\n" in shown.stdout
    assert json.loads(momentseek("status", "--library", ADDRESS, "--json").stdout)["path"] == ADDRESS
    with pytest.raises(MomentseekError, match="already exists"):
        make_elsewhere(ADDRESS, lambda into: make_shards(into, 2))


def test_a_cache_that_cannot_be_written_is_one_sentence(
    s3: S3Server, whole: Path, momentseek: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    send(whole)
    (tmp_path / "file").write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setenv("MOMENTSEEK_CACHE", str(tmp_path / "file" / "cache"))
        for words in (["status", "--library", ADDRESS], ["shard", "s3://films/new", "--shards", "2"]):
            result = momentseek(*words)
            assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
            assert "name another place (MOMENTSEEK_CACHE)" in result.stderr
