"""What is changed on one machine is seen on another, whole; two writers, and one that dies, spoil nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from s3_server import S3Server

from momentseek.api.library import open_store
from momentseek.cluster.replicas import fetching, publishing, replica
from momentseek.cluster.replicas import files as eviction
from momentseek.cluster.replicas import state as lease
from momentseek.cluster.replicas.publishing import LEASE_SECONDS, Publisher
from momentseek.cluster.replicas.replica import ShardReplica
from momentseek.cluster.shards.making import make_elsewhere, make_shards, split_library
from momentseek.cluster.shards.store import ShardedStore
from momentseek.cluster.storage.address import StoreUnreachableError
from momentseek.cluster.storage.objects import MissingObjectError, ObjectStore
from momentseek.core.errors import LibraryBusyError, LibraryError, MomentseekError
from momentseek.library.location import library_folder

pytest.importorskip("obstore")
ADDRESS = "s3://films/lib"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """``machine("b")``: be another machine from now on, with replicas of its own."""
    return lambda name: monkeypatch.setenv("MOMENTSEEK_CACHE", str(tmp_path / name))


@pytest.fixture
def sent(s3: S3Server, whole: Path) -> S3Server:
    """The server with the small library in two shards."""
    make_elsewhere(ADDRESS, lambda into: split_library(whole, into, 2))
    return s3


def open_sharded() -> ShardedStore:
    opened = open_store(ADDRESS)
    assert isinstance(opened, ShardedStore)
    return opened


def names() -> list[str]:
    with open_store(ADDRESS) as opened:
        assert opened.verify().problems == []
        return [video.name for video in opened.videos()]


def test_videos_are_added_removed_and_compacted_from_two_machines(
    s3: S3Server,
    machine: Callable[[str], None],
    light: ModuleType,
    films: Path,
    momentseek: Callable[..., Any],
    tmp_path: Path,
) -> None:
    make_elsewhere(ADDRESS, lambda into: make_shards(into, 2, encoder="colours"))
    machine("a")
    with open_store(ADDRESS) as opened:
        opened.options = replace(opened.options, transcriber=None)
        assert opened.add(films).added == 3
    machine("b")
    assert sorted(names()) == ["a.mp4", "b.mp4", "deep/c.mkv"]
    with open_store(tmp_path / "here", create=True, encoder="colours") as opened:
        opened.options = replace(opened.options, transcriber=None)
        opened.add(films)
    found = [
        json.loads(momentseek("search", "red", "--library", where, "--json").stdout)["hits"]
        for where in (ADDRESS, tmp_path / "here")
    ]
    assert [(one["video"], one["start"], one["score"]) for one in found[0]] == [
        (one["video"], one["start"], one["score"]) for one in found[1]
    ]
    assert len(found[0]) >= 2
    with open_store(ADDRESS) as opened:
        opened.options = replace(opened.options, transcriber=None)
        report = opened.add(films)
        assert (report.added, report.unchanged) == (0, 3)
        opened.remove("b.mp4")
    machine("a")
    assert len(names()) == 2
    with open_store(ADDRESS) as opened:
        assert opened.compact().videos == 1
    machine("c")
    assert len(names()) == 2
    named = {
        chunk[0]
        for path, data in s3.objects.items()
        if path.endswith("state.json")
        for parts in json.loads(data)["files"].values()
        for chunk in parts
    } | {
        hash for path, data in s3.objects.items() if path.endswith("state.json") for hash in json.loads(data)["dropped"]
    }
    assert {path.rpartition("/")[2] for path in s3.objects if "/objects/" in path} == named
    assert not [path for path, data in s3.objects.items() if path.endswith("state.json") and b"lease" in data]


def test_an_open_library_sees_what_another_machine_changes(
    sent: S3Server, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "FRESH_SECONDS", 0.0)
    machine("reader")
    with open_sharded() as reader:
        before = [one.snapshot() for one in reader.shards]
        machine("writer")
        with open_store(ADDRESS) as writer:
            writer.remove("film3.mp4")
        after = [one.snapshot() for one in reader.shards]
        assert len(reader.videos()) == 5
        assert sum(len(one.gone) for one in after) == 1
        assert sum(old is new for old, new in zip(before, after, strict=True)) == 1, "the other shard stays warm"


def test_replaced_segments_are_read_from_the_new_state(
    sent: S3Server, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two searches at a time: one takes over the new state while the other still fetches objects of the old one."""
    machine("reader")
    open_sharded().close()
    shard = next(path for path in sent.objects if path.endswith("state.json")).split("/")[-2]
    found = ShardReplica.at(library_folder(ADDRESS) / shard, f"{ADDRESS}/{shard}")
    asked = []

    def fetch(self: ShardReplica, names: object) -> int:
        asked.append(names)
        if len(asked) > 1:
            return 0
        machine("writer")
        with open_store(ADDRESS) as writer:
            for video in writer.videos():
                writer.remove(video.name)
        machine("reader")
        found.pull()
        raise MissingObjectError("an object does not exist")

    monkeypatch.setattr(ShardReplica, "fetch_vectors", fetch)
    found.ensure_vectors(lambda: ["a"])
    assert len(asked) == 2
    asked.clear()
    monkeypatch.setattr(ShardReplica, "pull", lambda self: False)

    def lose(self: ShardReplica, names: object) -> int:
        raise MissingObjectError("an object does not exist")

    monkeypatch.setattr(ShardReplica, "fetch_vectors", lose)
    with pytest.raises(LibraryError, match="an object does not exist"):
        found.ensure_vectors(lambda: ["a"])


def test_a_writer_that_dies_before_its_state_leaves_the_old_one(
    sent: S3Server, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("a")
    with monkeypatch.context() as patch:
        patch.setattr(publishing.Publisher, "end", lambda self: self._stop.set())  # killed: nothing is published
        with open_store(ADDRESS) as opened:
            opened.remove("film3.mp4")
            assert len(opened.videos()) == 5
    sent.objects["films/lib/shard-000/objects/" + "0" * 32] = b"sent before it died"
    machine("b")
    assert len(names()) == 6
    with open_store(ADDRESS) as opened:
        notes = opened.verify().notes
        assert any("1 object that nothing names" in note for note in notes)
    with pytest.raises(LibraryBusyError, match="is changing this library"), open_store(ADDRESS) as opened:
        opened.remove("film4.mp4")
    machine("a")  # the next writer here knows that the other is dead, and goes on with what it did
    with open_store(ADDRESS) as opened:
        opened.compact()
    assert len(names()) == 5
    machine("b")
    assert len(names()) == 5
    assert not [path for path in sent.objects if path.endswith("0" * 32)]


def test_unpublished_work_is_dropped_after_another_machine_published(
    sent: S3Server, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("a")
    with monkeypatch.context() as patch:
        patch.setattr(publishing.Publisher, "end", lambda self: self._stop.set())
        with open_store(ADDRESS) as opened:
            opened.remove("film3.mp4")
    machine("b")
    monkeypatch.setattr(lease, "LEASE_SECONDS", 0.0)  # time passes
    time.sleep(0.01)
    with open_store(ADDRESS) as opened:
        opened.remove("film3.mp4")
        opened.remove("film4.mp4")
    machine("a")
    assert names() == ["film0.mp4", "film1.mp4", "film2.mp4", "film5.mp4"]


def test_a_writer_that_was_thought_dead_cannot_overwrite(sent: S3Server, machine: Callable[[str], None]) -> None:
    machine("a")
    with open_sharded() as slow:
        shard = next(one for one in slow.shards if one.videos())
        with pytest.raises(LibraryBusyError, match="another machine"), shard.changing():  # noqa: PT012
            with shard.catalog.changes():
                shard.catalog.remove_video(shard.videos()[0].id)
            state = json.loads(sent.objects[f"films/lib/{shard.path.name}/state.json"])
            state["lease"]["at"] -= LEASE_SECONDS + 1
            sent.objects[f"films/lib/{shard.path.name}/state.json"] = json.dumps(state).encode()
            machine("b")
            with open_sharded() as quick:
                other = quick.shards[slow.shards.index(shard)]
                quick.remove(other.videos()[-1].name)
            machine("a")
    assert len(names()) == 5


def test_the_lease_names_its_holder_and_ends(sent: S3Server, machine: Callable[[str], None]) -> None:
    path = "films/lib/shard-000/state.json"
    machine("a")
    with open_sharded() as opened:
        shard = ShardReplica.at(opened.shards[0].path, f"{ADDRESS}/shard-000")
    first, second, third = (Publisher(shard, name) for name in ("a", "b", "a"))
    before = sent.objects[path]
    first.take()
    with pytest.raises(LibraryBusyError, match=r"process \d+ on .* is changing this library .* last renewed 0 s ago"):
        second.take()
    third.take()
    with pytest.raises(LibraryBusyError, match="another machine has taken over"):
        first.renew()
    first.give_back()
    assert json.loads(sent.objects[path])["lease"]["holder"] == "a", "it was not its own any more"
    third.give_back()
    assert sent.objects[path] == before
    second.take()
    assert json.loads(sent.objects[path])["lease"]["holder"] == "b"


def test_a_lost_answer_is_not_taken_for_another_machine(
    sent: S3Server, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that hears nothing sends a request again, and the store refuses the second as stale."""
    machine("a")
    once = ObjectStore.replace

    def twice(self: ObjectStore, name: str, data: bytes, mark: str | None) -> str:
        once(self, name, data, mark)
        return once(self, name, data, mark)

    monkeypatch.setattr(ObjectStore, "replace", twice)
    with open_store(ADDRESS) as opened:
        opened.remove("film3.mp4")
    monkeypatch.setattr(ObjectStore, "replace", once)
    machine("b")
    assert len(names()) == 5


def test_late_write_of_the_store_is_recognised_as_our_own(
    sent: S3Server, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that was stopped makes a write once it goes on, when the writer has long given up waiting for it."""
    machine("a")
    once, late = ObjectStore.replace, []

    def replace_late(self: ObjectStore, name: str, data: bytes, mark: str | None) -> str:
        done = once(self, name, data, mark)
        if late:
            late.pop()
            raise StoreUnreachableError("the answer did not come")
        return done

    monkeypatch.setattr(ObjectStore, "replace", replace_late)
    with open_sharded() as opened:
        shard = next(one for one in opened.shards if len(one.videos()) > 2)
        gone = [video.name for video in shard.videos()[:2]]
        publisher = Publisher(ShardReplica.at(shard.path, f"{ADDRESS}/{shard.path.name}"), "a")
        publisher.take()

        def fail_late(work: Callable[[], object]) -> None:
            late.append(True)
            with pytest.raises(StoreUnreachableError):
                work()

        fail_late(publisher.renew)
        publisher.renew()
        with shard.catalog.changes():
            shard.catalog.remove_video(shard.videos()[0].id)
        fail_late(publisher.publish)
        state = json.loads(sent.objects[f"films/lib/{shard.path.name}/state.json"])
        fail_late(publisher.renew)
        assert not publisher.publish(), "the store has made it after all"
        with shard.catalog.changes():
            shard.catalog.remove_video(shard.videos()[0].id)
        fail_late(publisher.publish)
        publisher.give_back()
        now = json.loads(sent.objects[f"films/lib/{shard.path.name}/state.json"])
        assert "lease" not in now
        assert now["files"] != state["files"], "nothing that the store has made is taken back"
    machine("b")
    assert not set(gone) & set(names())


def test_objects_that_are_gone_are_named_and_sent_again(sent: S3Server) -> None:
    with open_sharded() as opened:
        for one in opened.shards:
            one.snapshot()
        lost = f"films/lib/shard-000/objects/{opened.shards[0].catalog.segments()[0].name}"
        del sent.objects[lost]
        assert [text for text in opened.verify().problems if "is missing or cut short" in text]
        report = opened.verify(repair=True)
        assert (report.problems, [text for text in report.repaired if "sent again" in text] != []) == ([], True)
    assert lost in sent.objects


def test_a_long_work_is_published_while_it_goes_on(
    sent: S3Server, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(publishing, "PUBLISH_SECONDS", 0.0)
    monkeypatch.setattr(publishing, "PUBLISH_SHARE", 1e9)
    machine("a")
    with open_sharded() as opened:
        shard = next(one for one in opened.shards if one.videos())
        path = f"films/lib/{shard.path.name}/state.json"
        with shard.changing():
            before = sent.objects[path]
            with shard.catalog.changes():
                shard.catalog.remove_video(shard.videos()[0].id)
            for _ in range(3000):
                if sent.objects[path] != before:
                    break
                time.sleep(0.02)
            assert sent.objects[path] != before
    assert len(names()) == 5


def test_the_cache_is_bounded_and_what_is_evicted_is_fetched_again(
    sent: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with open_sharded() as opened:
        for one in opened.shards:
            one.snapshot()
    files = list((tmp_path / "cache").glob("*/*/segments/*.vec"))
    assert eviction.evict_segments(tmp_path / "cache") == 0
    monkeypatch.setenv("MOMENTSEEK_CACHE_GB", "0")
    assert eviction.evict_segments(tmp_path / "cache") == 0, "they were used just now"
    late = time.time() + 100
    kept = {files[0]}
    freed = sum(path.stat().st_size for path in files[1:])
    assert eviction.evict_segments(tmp_path / "cache", kept, late) == freed
    assert [path for path in files if path.exists()] == [files[0]]
    assert len(names()) == 6
    monkeypatch.setenv("MOMENTSEEK_CACHE_GB", "much")
    with pytest.raises(MomentseekError, match="not a number of gigabytes"):
        eviction.cache_bytes()


def test_two_processes_may_make_room_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = tmp_path / "lib" / "shard-000" / "segments"
    segments.mkdir(parents=True)
    (segments / "a.vec").write_bytes(b"vectors")
    stat = Path.stat

    def lose(self: Path, **more: Any) -> Any:
        if self.name == "a.vec" and self.exists():
            self.unlink()  # between finding it and asking how large it is
        return stat(self, **more)

    monkeypatch.setattr(Path, "exists", lambda self: bool(os.path.lexists(self)))
    monkeypatch.setattr(Path, "stat", lose)
    assert eviction.evict_segments(tmp_path) == 0


def test_only_changed_parts_of_a_catalog_travel(
    sent: S3Server, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "CHUNK_BYTES", 4096)
    monkeypatch.setattr(fetching, "CHUNK_BYTES", 4096)
    machine("a")
    with open_store(ADDRESS) as opened:
        opened.remove("film0.mp4")
        sent.calls.clear()
        opened.remove("film1.mp4")
        opened.remove("film2.mp4")
    puts = [path for method, path in sent.calls if method == "PUT" and "/objects/" in path]
    whole = sum(len(data) for path, data in sent.objects.items() if "/objects/" in path) // 4096
    assert 0 < len(puts) < whole / 2
    machine("b")
    names()
    machine("a")
    with open_store(ADDRESS) as opened:
        opened.remove("film5.mp4")
    machine("b")
    sent.calls.clear()
    open_store(ADDRESS).close()
    gets = [path for method, path in sent.calls if method == "GET" and "/objects/" in path]
    assert 0 < len(gets) < whole / 2
    assert len(names()) == 2
