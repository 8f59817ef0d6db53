"""A library is split without losing a bit, grows shard by shard, and says in one sentence what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from small_library import fill, nothing

from momentseek.api.library import open_store
from momentseek.cluster.manifest import MANIFEST_FILE, read_manifest
from momentseek.cluster.shards.making import make_shards, split_library
from momentseek.cluster.shards.store import ShardedStore
from momentseek.core.errors import MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.files import FoundFiles
from momentseek.library.paths import hold_lock
from momentseek.library.reader import take_snapshot
from momentseek.library.store import LibraryStore
from momentseek.media.subtitles.cues import Cue


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    films = {f"film{i}.mp4": nothing(3 + i, i) for i in range(9)}
    fill(tmp_path / "one", films, {"film3.mp4": [Cue(0.0, 1.0, "hello")]}).close()
    return tmp_path / "one"


def vectors(folder: Path) -> dict[int, bytes]:
    catalog = Catalog(folder)
    held = take_snapshot(catalog, folder / "segments").vision
    out = {
        int(id): segment.codes[first:last].tobytes()
        + segment.scales[first:last].tobytes()
        + segment.half[first:last].tobytes()
        for segment in held
        for id, first, last in zip(segment.ids, segment.offsets, segment.offsets[1:], strict=False)
    }
    catalog.close()
    return out


def test_a_split_library_has_every_video_once_and_the_same_bits(whole: Path, tmp_path: Path) -> None:
    manifest = split_library(whole, tmp_path / "new", 3)
    parts = [vectors(folder) for folder in manifest.folders(tmp_path / "new")]
    assert {id: rows for part in parts for id, rows in part.items()} == vectors(whole)
    assert sum(map(len, parts)) == 9
    with open_store(whole) as one, open_store(tmp_path / "new") as new:
        assert new.videos() == one.videos()
        assert new.catalog.cues(4) == one.catalog.cues(4) == [Cue(0.0, 1.0, "hello")]
        assert new.verify().problems == []
        assert (new.status().videos, new.status().clips) == (9, one.status().clips)
        assert [video.name for video in new.remove("film3.mp4")] == ["film3.mp4"]
        assert new.status().videos == 8
        assert new.compact().videos == 1


def test_shards_never_give_the_same_number(whole: Path, tmp_path: Path) -> None:
    manifest = split_library(whole, tmp_path / "new", 3)
    given = [set(Catalog(folder).next_ids(5)) for folder in manifest.folders(tmp_path / "new")]
    assert len(set().union(*given)) == 15
    assert min(set().union(*given)) == 10


def test_what_cannot_be_opened_or_made_is_refused_in_one_sentence(whole: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    split_library(whole, new, 2)
    with pytest.raises(MomentseekError, match="already exists"):
        make_shards(new, 2)
    with pytest.raises(MomentseekError, match="in shards already"):
        split_library(new, tmp_path / "other", 2)
    for create in (None, True, False):
        with pytest.raises(MomentseekError, match="is in shards; open it with"):
            LibraryStore.open(new, create=create)
    assert {path.name for path in new.iterdir()} == {MANIFEST_FILE, "shard-000", "shard-001"}
    with pytest.raises(MomentseekError, match="cannot have 0 shards"):
        make_shards(tmp_path / "none", 0)
    manifest = json.loads((new / MANIFEST_FILE).read_text())
    (new / MANIFEST_FILE).write_text(json.dumps({**manifest, "version": 2}))
    with pytest.raises(MomentseekError, match="of another release"):
        open_store(new)
    (new / MANIFEST_FILE).write_text("{}")
    with pytest.raises(MomentseekError, match="not a manifest of shards"):
        open_store(new)
    (new / MANIFEST_FILE).write_text(json.dumps(manifest))
    away = new / "shard-001"
    away.rename(tmp_path / "away")
    with pytest.raises(MomentseekError, match="the shard shard-001 is missing"):
        open_store(new)
    shutil.copytree(new / "shard-000", away)
    with pytest.raises(MomentseekError, match="is in the shards shard-000 and shard-001"):
        open_store(new)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["away", "new", "one"]  # nothing half done


def test_a_library_in_shards_of_an_earlier_version_is_made_again_as_a_whole(tmp_path: Path) -> None:
    manifest = make_shards(tmp_path / "new", 2)
    for folder in manifest.folders(tmp_path / "new"):
        with closing(sqlite3.connect(folder / "catalog.sqlite")) as catalog:
            catalog.execute("PRAGMA user_version = 0")
    with pytest.raises(MomentseekError) as refused:
        open_store(tmp_path / "new")
    assert str(refused.value).endswith(
        f"was made by an earlier version; move {tmp_path / 'new'} away, and make and fill it again: "
        f"momentseek shard {tmp_path / 'new'} --shards N"
    )


def test_a_split_that_is_stopped_leaves_nothing(whole: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        split_library(whole, tmp_path / "new", 3, progress=stop)
    assert os.listdir(tmp_path) == ["one"]


def test_a_video_in_the_wrong_shard_is_a_problem(whole: Path, tmp_path: Path) -> None:
    manifest = split_library(whole, tmp_path / "new", 2)
    with open_store(tmp_path / "new") as new:
        assert isinstance(new, ShardedStore)
        shard = next(one for one in new.shards if one.videos())
        with shard.catalog.changes():
            other = next(c for c in map(str, range(99)) if manifest.shard_of(c) != new.shards.index(shard))
            shard.catalog.run("UPDATE videos SET hash = ? WHERE id = ?", (other, shard.videos()[0].id))
        assert len([text for text in new.verify().problems if "belongs to" in text]) == 1


def test_an_empty_library_in_shards_takes_nothing_as_nothing(tmp_path: Path) -> None:
    make_shards(tmp_path / "new", 2)
    assert read_manifest(tmp_path / "new").shards == ("shard-000", "shard-001")
    with open_store(tmp_path / "new") as new:
        assert new.add_found(FoundFiles()).in_library == 0
        assert new.videos() == []
        assert np.array_equal(new.catalog.ids(), [])


def test_what_a_killed_split_left_is_deleted_by_the_next(whole: Path, tmp_path: Path) -> None:
    killed = tmp_path / ".many.making-abcd"
    (killed / "shard-000").mkdir(parents=True)
    alive = tmp_path / ".many.making-efgh"
    alive.mkdir()
    with hold_lock(alive):
        split_library(whole, tmp_path / "many", 2)
        assert sorted(path.name for path in tmp_path.glob(".many*")) == [alive.name]
    assert not (tmp_path / "many" / "lock").exists()


def test_folders_and_vectors_follow_the_umask(whole: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        split_library(whole, tmp_path / "many", 2)
    finally:
        os.umask(before)
    loose = [path for path in [tmp_path / "many", *(tmp_path / "many").rglob("*")] if path.stat().st_mode & 0o077]
    assert loose == []


def test_a_manifest_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shards.json").write_text("[" * 100_000)
    with pytest.raises(MomentseekError, match="is not a manifest of shards"):
        read_manifest(tmp_path)
