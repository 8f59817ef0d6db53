"""A store that hangs or refuses: the replica here answers within seconds, and says that it may be old."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from s3_server import S3Server
from tests.cluster.replicas.test_opening import ADDRESS, send

from momentseek.api.library import Library, open_store
from momentseek.cluster.replicas import replica
from momentseek.cluster.replicas.replica import ShardReplica
from momentseek.cluster.storage.address import StoreUnreachableError, explain
from momentseek.core.errors import MomentseekError
from momentseek.library.location import library_folder

pytest.importorskip("obstore")
MAX_SECONDS = 60.0
"""What a store that hangs may cost on a busy machine; it is meant to be 8."""


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "_away", {})


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(params=["hangs", "refuses"])
def away(request: pytest.FixtureRequest, silent: str) -> str:
    """The address of a store that is not there."""
    return silent if request.param == "hangs" else "http://127.0.0.1:9"


def test_an_open_library_answers_and_says_that_it_may_be_old(
    s3: S3Server, whole: Path, away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(whole)
    with Library.open(ADDRESS) as library:
        first = library.search("hello", streams=["speech"])
        assert (first.complete, first.note) == (True, "")
        monkeypatch.setattr(replica, "FRESH_SECONDS", 0.0)
        monkeypatch.setenv("AWS_ENDPOINT_URL", away)
        for shard in library.store.shards:  # type: ignore[attr-defined]
            shard.origin._objects = None
        begun = time.monotonic()
        found = library.search("hello", streams=["speech"])
        assert time.monotonic() - begun < MAX_SECONDS
        assert not found.complete
        assert f"{ADDRESS} cannot be reached" in found.note
        assert "may be old" in found.note
        assert [hit.name for hit in found] == [hit.name for hit in first]
        begun = time.monotonic()
        assert not library.search("hello", streams=["speech"]).complete
        assert time.monotonic() - begun < 2, "a store that is away is not asked by every search"
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.address)
        for shard in library.store.shards:  # type: ignore[attr-defined]
            shard.origin._objects = None
        monkeypatch.setattr(replica, "_away", {key: (0.0, since) for key, (_, since) in replica._away.items()})
        again = library.search("hello", streams=["speech"])
        assert (again.complete, again.note) == (True, "")


def test_commands_end_within_seconds(
    s3: S3Server, whole: Path, away: str, momentseek: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, films: Path
) -> None:
    send(whole)
    with open_store(ADDRESS) as there:
        for one in there.shards:  # type: ignore[attr-defined]
            one.snapshot()
    monkeypatch.setenv("AWS_ENDPOINT_URL", away)
    begun = time.monotonic()
    found = momentseek("search", "hello", "--library", ADDRESS, "--streams", "speech")
    assert found.returncode == 0, found.stderr
    assert "film3.mp4" in found.stdout
    assert "may be old" in found.stdout + found.stderr
    added = momentseek("add", films, "--library", ADDRESS)
    assert added.returncode == 2
    assert "cannot be reached" in added.stderr
    assert added.stderr.count("\n") == 1
    assert time.monotonic() - begun < 3 * MAX_SECONDS


def test_what_is_not_here_is_refused_within_seconds(silent: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", silent)
    begun = time.monotonic()
    with pytest.raises(StoreUnreachableError, match="cannot be reached"):
        open_store(ADDRESS)
    assert time.monotonic() - begun < MAX_SECONDS


def test_a_store_that_says_a_byte_at_a_time_counts_as_away(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("momentseek.cluster.storage.address.ANSWER_SECONDS", 2)
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\nETag: a\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
        with suppress(OSError), connection:
            connection.recv(1 << 16)
            connection.sendall(head + b"\r\n")
            while not ended.wait(0.2):
                connection.sendall(b" ")

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(server.accept()[0],)).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        begun = time.monotonic()
        try:
            with pytest.raises(StoreUnreachableError, match="cannot be reached"):
                open_store(ADDRESS)
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
    assert time.monotonic() - begun < MAX_SECONDS


def test_a_missing_bucket_is_no_matter_of_credentials() -> None:
    text = "404 <Code>NoSuchBucket</Code><RequestId>4031401</RequestId> see credentials"
    said: MomentseekError = explain("s3://films/lib", PermissionError(text))
    assert str(said) == "s3://films/lib: the bucket does not exist; check its name, or create it"


def test_a_look_that_failed_does_not_count_as_one(s3: S3Server, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is back for one shard: the other must look too before its answers count as new."""
    send(whole)
    open_store(ADDRESS).close()
    folder, names = library_folder(ADDRESS), ("shard-000", "shard-001")
    first, second = (ShardReplica.at(folder / name, f"{ADDRESS}/{name}") for name in names)
    monkeypatch.setattr(replica, "_equal", {})  # that was long ago
    monkeypatch.setattr(replica, "AWAY_SECONDS", 0.0)
    state, looks = ShardReplica.remote_state, []

    def fail(self: ShardReplica) -> Any:
        raise StoreUnreachableError("away")

    def look(self: ShardReplica) -> Any:
        looks.append(self.folder.name)
        return state(self)

    monkeypatch.setattr(ShardReplica, "remote_state", fail)
    second.freshen()
    assert second.why_outdated()
    monkeypatch.setattr(ShardReplica, "remote_state", look)
    for one in (first, second, second):
        one.freshen()
        assert not one.why_outdated()
    assert looks == list(names)
