"""Publisher: what a writer changed in a replica, made the shard's state in object storage, under the shard's lease.

New objects go first, the state that names them last, and only if it is still the one that the writer began with. A
writer that dies in between leaves the old state, and objects that nothing names. The lease only spares two machines
from working for nothing: what keeps a shard whole is that its state is replaced conditionally.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from momentseek.cluster.replicas.fetching import Piece, do_at_once, missing_files
from momentseek.cluster.replicas.place import read_origin
from momentseek.cluster.replicas.replica import ShardReplica, copy_catalog
from momentseek.cluster.replicas.state import (
    CHUNK_BYTES,
    MODELS_FOLDER,
    OBJECTS_FOLDER,
    PLAN_FOLDER,
    STATE_FILE,
    Chunk,
    Files,
    ShardState,
    segment_path,
)
from momentseek.cluster.storage.objects import MissingObjectError, ObjectStore, StaleObjectError, file_size
from momentseek.core.errors import LibraryBusyError, MomentseekError, parameter
from momentseek.core.reports import count
from momentseek.library.catalog import Catalog
from momentseek.library.database import CATALOG_FILE
from momentseek.library.segments import checksum

LEASE_FILE = "lease.json"
LEASE_SECONDS = 30.0
"""A writer that has not been heard of for so long is taken for dead."""
RENEW_SECONDS = 8.0
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class _Sign:
    """What a lease says: who holds it, in words too, and when it was renewed."""

    holder: str
    name: str
    since: float
    at: float

    @classmethod
    def read(cls, data: bytes) -> _Sign:
        try:
            found = json.loads(data)
            return cls(str(found["holder"]), str(found["name"]), float(found["since"]), float(found["at"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return cls("", "another process", 0.0, 0.0)

    def to_bytes(self) -> bytes:
        return json.dumps({"holder": self.holder, "name": self.name, "since": self.since, "at": self.at}).encode()


class ShardLease:
    """The lease of one shard for one holder; taken, renewed now and then, and given back.

    Who has the same name as a holder may take its lease at once: a replica has one writer at a time, so the other is
    dead.
    """

    def __init__(self, objects: ObjectStore, holder: str) -> None:
        self._objects, self._holder = objects, holder
        self._mark: str | None = None
        self._since = 0.0

    def take(self, wait: float = 0.0) -> None:
        """Take the lease; if another holds it, wait up to ``wait`` seconds and then refuse, naming the other."""
        deadline = time.monotonic() + wait
        self._since = time.time()
        seen: tuple[str, float] | None = None
        while True:
            try:
                there = self._objects.read(LEASE_FILE)
            except MissingObjectError:
                there = None
            sign = None if there is None else _Sign.read(there.data)
            if there is not None and (seen is None or seen[0] != there.mark):
                seen = there.mark, time.monotonic()
            if sign is None or sign.holder == self._holder or self._is_dead(sign, seen):
                with suppress(StaleObjectError):  # another was quicker
                    self._mark = self._objects.replace(LEASE_FILE, self._sign(), None if there is None else there.mark)
                    return
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                raise LibraryBusyError(
                    f"{self._objects.address}: {sign.name} is changing this library (since "
                    f"{time.strftime('%H:%M:%S', time.localtime(sign.since))}, last heard of "
                    f"{max(0.0, time.time() - sign.at):.0f} s ago); wait for it, or say for how many seconds to wait "
                    f"({parameter('wait', 600)})"
                )
            time.sleep(min(POLL_SECONDS, left))

    def renew(self) -> None:
        """Say that the holder is alive; raises LibraryBusyError if another has taken the lease."""
        try:
            self._mark = self._objects.replace(LEASE_FILE, self._sign(), self._mark)
        except StaleObjectError:
            raise LibraryBusyError(
                f"{self._objects.address}: another machine has taken over, because this one was not heard of for "
                f"{LEASE_SECONDS:.0f} s; run the command again"
            ) from None

    def give_back(self) -> None:
        """Let another writer begin at once; a store that cannot be reached lets it begin later."""
        with suppress(MomentseekError):
            if self._mark is not None and self._objects.read(LEASE_FILE).mark == self._mark:
                self._objects.delete([LEASE_FILE])
        self._mark = None

    def _sign(self) -> bytes:
        name = f"process {os.getpid()} on {platform.node() or 'another machine'}"
        return _Sign(self._holder, name, self._since, time.time()).to_bytes()

    @staticmethod
    def _is_dead(sign: _Sign, seen: tuple[str, float] | None) -> bool:
        """Whether a holder was silent for too long, by its own clock or, as clocks differ, by how long we watched."""
        watched = 0.0 if seen is None else time.monotonic() - seen[1]
        return time.time() - sign.at > LEASE_SECONDS or watched > LEASE_SECONDS


Sources = dict[str, Path | Piece]
"""Where to read each chunk, by its hash."""
PUBLISH_SECONDS = 60.0
"""How often a long work is published while it goes on …"""
PUBLISH_SHARE = 0.1
"""… but never so often that publishing takes a larger share of the time."""


class PublishedReplica(ShardReplica):
    """The replica of a shard as the origin of the library in its folder: what is changed here is published there."""

    @contextmanager
    def publishing(self, wait: float, holder: str | None = None) -> Iterator[None]:
        """Be the only writer of the shard for the time of a ``with``, and publish at its end what was changed.

        The caller holds the replica's lock. What was committed is published also when the work is stopped; what cannot
        be published stays in the replica, and is published by the next writer here if the shard is as it was.
        """
        publisher = Publisher(self, holder or self.origin.replica)
        publisher.begin(wait)
        self.writes = True
        try:
            yield
        finally:
            self.writes = False
            publisher.end()

    def problems(self) -> tuple[list[str], list[str]]:
        """What is wrong with the objects of the shard, and what is only worth knowing."""
        state, _ = self.remote_state()
        there = self._sizes()
        wrong = [
            f"{self.origin.address}: the object {chunk.hash} is missing or cut short; momentseek verify --repair sends "
            "it again, if it is here"
            for chunk in state.chunks.values()
            if there.get(chunk.hash) != chunk.size
        ]
        orphans = _orphans(state, there)
        left = f"{count(len(orphans), 'object')} that nothing names, left by a writer that was stopped"
        return wrong, [left] if orphans else []

    def send_missing(self) -> int:
        """Send the files again whose objects are missing or cut short, from the replica; returns how many.

        The caller holds the lease. A catalog is not sent: the next change of it is.
        """
        state, _ = self.remote_state()
        there = self._sizes()
        lost: Files = {
            path: chunks
            for path, chunks in state.files.items()
            if len(chunks) == 1 and there.get(chunks[0].hash) != chunks[0].size
        }
        have = lost.keys() - missing_files(self.folder, lost).keys()
        sources: Sources = {lost[path][0].hash: self.folder / path for path in have}
        upload_chunks(self.objects, sources)
        return len(sources)

    def drop_orphans(self) -> int:
        """Delete the objects that the shard's state does not name; returns how many. The caller holds the lease."""
        orphans = _orphans(self.remote_state()[0], self._sizes())
        self.objects.delete(f"{OBJECTS_FOLDER}/{hash}" for hash in orphans)
        return len(orphans)

    def _sizes(self) -> dict[str, int]:
        return {path.rpartition("/")[2]: size for path, size in self.objects.sizes(OBJECTS_FOLDER).items()}


def open_replica(folder: Path) -> PublishedReplica | None:
    """The shard that the library in a folder is a replica of; None if it is an ordinary library."""
    origin = read_origin(folder)
    return None if origin is None else PublishedReplica(folder, origin)


class Publisher:
    """One writer's time with a shard: the lease, kept alive by a thread, and what is published now and at the end."""

    def __init__(self, replica: ShardReplica, holder: str) -> None:
        self._replica = replica
        self._lease = ShardLease(replica.objects, holder)
        self._mark = ""
        self._base: ShardState | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True, name="shard-lease")

    def begin(self, wait: float) -> None:
        """Take the lease and the shard's present state."""
        self._lease.take(wait)
        try:
            self._base, there = self._replica.remote_state()
            while self._replica.pull_locked(self._base):  # one that lost its lease may publish at the last moment
                self._base, there = self._replica.remote_state()
            self._mark = there.mark
        except BaseException:
            self._lease.give_back()
            raise
        self._thread.start()

    def end(self) -> None:
        """Publish what was changed, and give the lease back."""
        self._stop.set()
        self._thread.join()
        try:
            self.publish()
        finally:
            self._lease.give_back()

    def publish(self) -> bool:
        """Make the replica's content the shard's; false if that is the same already."""
        assert self._base is not None
        objects = self._replica.objects
        with tempfile.TemporaryDirectory(dir=self._replica.folder, prefix=".publishing-") as work:
            copy = Path(work) / CATALOG_FILE
            copy_catalog(self._replica.folder, copy)
            sources: Sources = {}
            files = list_files_of(self._replica.folder, copy, self._base, sources)
            if files == self._base.files:
                return False
            fresh = ShardState(files)
            have, wanted = self._base.chunks, fresh.chunks
            upload_chunks(objects, {hash: sources[hash] for hash in wanted if hash not in have})
        fresh = ShardState(files, fresh.id, tuple(sorted(have.keys() - wanted.keys())))
        self._lease.renew()
        try:
            self._mark = objects.replace(STATE_FILE, fresh.to_bytes(), self._mark)
        except StaleObjectError:
            raise LibraryBusyError(
                f"{objects.address}: was changed by another machine meanwhile, so what was done here is not in it; "
                "run the command again"
            ) from None
        self._replica.set_base(fresh)
        old = [hash for hash in self._base.dropped if hash not in wanted]
        self._base = fresh
        objects.delete(f"{OBJECTS_FOLDER}/{hash}" for hash in old)
        return True

    def _keep(self) -> None:
        """Renew the lease, and publish now and then, until the work ends; what goes wrong shows at the end."""
        published, took = time.monotonic(), 0.0
        while not self._stop.wait(RENEW_SECONDS):
            try:
                self._lease.renew()
                begun = time.monotonic()
                if begun - published > max(PUBLISH_SECONDS, took / PUBLISH_SHARE):
                    self.publish()
                    published = time.monotonic()
                    took = published - begun
            except LibraryBusyError:
                return
            except (
                MomentseekError,
                OSError,
            ):  # a segment was joined with others meanwhile, or the store is away
                continue


def list_files_of(folder: Path, catalog: Path, base: ShardState | None, sources: Sources) -> Files:
    """The files of a shard's folder with this copy of its catalog; ``sources`` gets where to read each chunk that the
    base does not have.
    """
    known = {} if base is None else base.files
    pieces = [Piece(catalog, at, CHUNK_BYTES) for at in range(0, file_size(catalog), CHUNK_BYTES)]
    files: Files = {CATALOG_FILE: tuple(Chunk.of(piece.read()) for piece in pieces)}
    sources.update(zip((chunk.hash for chunk in files[CATALOG_FILE]), pieces, strict=True))
    with closing(Catalog(catalog.parent)) as opened:
        names = [row.name for row in opened.segments()]
    for name in names:
        path = segment_path(name)
        if path in known:
            files[path] = known[path]
            continue
        if (size := file_size(folder / path)) < 0:
            raise MomentseekError(f"{folder / path}: is not there; run: momentseek verify")
        files[path] = (Chunk(name, size),)
        sources[name] = folder / path
    for part in (MODELS_FOLDER, PLAN_FOLDER):
        here = sorted(path for path in (folder / part).rglob("*") if _is_content(path, folder / part))
        if part == PLAN_FOLDER and not (folder / part / "plan.json").is_file():  # not fetched, so not changed either
            files |= {path: chunks for path, chunks in known.items() if path.startswith(f"{part}/")}
            continue
        for one in here:
            chunk = Chunk(checksum(one), file_size(one))
            files[one.relative_to(folder).as_posix()] = (chunk,)
            sources[chunk.hash] = one
    return files


def upload_chunks(objects: ObjectStore, sources: Sources) -> None:
    """Upload chunks, several at a time."""

    def upload(item: tuple[str, Path | Piece]) -> None:
        hash, source = item
        name = f"{OBJECTS_FOLDER}/{hash}"
        if isinstance(source, Piece):
            objects.write(name, source.read())
        else:
            objects.upload(name, source)

    do_at_once(upload, sources.items())


def _is_content(path: Path, top: Path) -> bool:
    """Whether a path is a file that lasts: one that is being written has a name with a dot first."""
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(top).parts)


def _orphans(state: ShardState, there: Mapping[str, int]) -> list[str]:
    """Objects that neither the state names nor the one before did, of which readers may still want some."""
    return sorted(there.keys() - state.chunks.keys() - set(state.dropped))
