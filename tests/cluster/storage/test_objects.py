"""A store reads, replaces, lists and deletes objects."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path

import pytest
from s3_server import serve_s3

from momentseek.cluster.storage.objects import MissingObjectError, ObjectStore, StaleObjectError
from momentseek.core.errors import MomentseekError

pytest.importorskip("obstore")


def check_store(objects: ObjectStore, place: Path, size: int) -> None:
    with pytest.raises(MissingObjectError):
        objects.read("a.json")
    first = objects.replace("a.json", b"one", None)
    assert (objects.read("a.json").data, objects.read("a.json").mark) == (b"one", first)
    for stale in (None, "another"):
        with pytest.raises(StaleObjectError):
            objects.replace("a.json", b"two", stale)
    second = objects.replace("a.json", b"two", first)
    with pytest.raises(StaleObjectError):
        objects.replace("a.json", b"three", first)
    assert objects.read("a.json").mark == second
    content = os.urandom(size)
    (place / "big").write_bytes(content)
    objects.upload("objects/big", place / "big")
    objects.write("objects/small", b"small")
    objects.fetch("objects/big", place / "copy")
    assert (place / "copy").read_bytes() == content
    assert objects.sizes("objects") == {"objects/big": size, "objects/small": 5}
    with pytest.raises(MissingObjectError):
        objects.fetch("objects/none", place / "none")
    objects.delete(["objects/big", "objects/none", "a.json"])
    objects.delete([])
    assert objects.sizes("objects") == {"objects/small": 5}
    with pytest.raises(MissingObjectError):
        objects.read("a.json")


def test_a_store_keeps_objects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with serve_s3(monkeypatch, "bucket"):
        check_store(ObjectStore("s3://bucket/some/place"), tmp_path, 100_000)


def test_a_large_object_goes_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with serve_s3(monkeypatch, "bucket") as server:
        check_store(ObjectStore("s3://bucket/lib"), tmp_path, 17 << 20)
        assert sum(method == "PUT" and path.endswith("big") for method, path in server.calls) == 3


def test_what_may_not_be_written_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_s3(monkeypatch, "bucket") as server:
        server.forbidden = "lib"
        with pytest.raises(MomentseekError, match="s3://bucket/lib: may not be read or written with these credentials"):
            ObjectStore("s3://bucket/lib").write("a", b"a")
    with pytest.raises(MomentseekError, match="names no bucket or folder"):
        ObjectStore("s3://")


@pytest.mark.figures
def test_a_server_of_others_keeps_objects(moto: str, tmp_path: Path) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{moto}/bucket", method="PUT")).close()
    check_store(ObjectStore("s3://bucket/lib"), tmp_path, 17 << 20)
