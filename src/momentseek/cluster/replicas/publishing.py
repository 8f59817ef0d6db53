"""Publisher: publishes a writer's changes of a replica as the shard's new state in object storage.

New objects are written first, and last the state that names them. The state also names the writer. A writer replaces
the state only if it is still what that writer wrote last; the store checks this (a conditional put). So a writer that
lost its lease can change nothing, and one that dies leaves the old state and some unused objects.
"""

from __future__ import annotations

import os
import platform
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from momentseek.cluster.replicas.fetching import Piece, do_at_once, missing_files
from momentseek.cluster.replicas.place import read_origin
from momentseek.cluster.replicas.replica import ShardReplica, copy_catalog
from momentseek.cluster.replicas.state import (
    CHUNK_BYTES,
    LEASE_SECONDS,
    MODELS_FOLDER,
    OBJECTS_FOLDER,
    PLAN_FOLDER,
    STATE_FILE,
    Chunk,
    Files,
    Lease,
    ShardState,
    segment_path,
)
from momentseek.cluster.storage.address import StoreUnreachableError
from momentseek.cluster.storage.objects import ObjectStore, StaleObjectError, file_size
from momentseek.core.errors import LibraryBusyError, MomentseekError, parameter
from momentseek.core.reports import count
from momentseek.library.catalog import Catalog
from momentseek.library.database import CATALOG_FILE
from momentseek.library.segments import checksum

RENEW_SECONDS = 8.0
POLL_SECONDS = 1.0
Sources = dict[str, Path | Piece]
"""Hash of a chunk → where to read it."""
PUBLISH_SECONDS = 60.0
"""Seconds between two publications of a long change that is still running …"""
PUBLISH_SHARE = 0.1
"""… or longer, so that publishing takes at most this share of the time."""


class PublishedReplica(ShardReplica):
    """A replica whose local changes are published to its shard in object storage."""

    @contextmanager
    def publishing(self, wait: float, holder: str | None = None) -> Iterator[None]:
        """Hold the write lease of the shard for a ``with`` block, and publish the changes at its end.

        The caller holds the replica's lock. Committed changes are published even if the work is stopped; what cannot
        be published stays in the replica, and the next local writer publishes it if the shard has not changed since.
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
        """Check the shard's objects; returns problems, and notes that need no repair."""
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
        """Upload again, from the replica, the files whose objects are missing or truncated; returns their number.

        The caller holds the lease. The catalog is not uploaded; the next change uploads it.
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
        """Delete the objects that the shard's state does not name; returns their number. The caller holds the lease."""
        orphans = _orphans(self.remote_state()[0], self._sizes())
        self.objects.delete(f"{OBJECTS_FOLDER}/{hash}" for hash in orphans)
        return len(orphans)

    def _sizes(self) -> dict[str, int]:
        return {path.rpartition("/")[2]: size for path, size in self.objects.sizes(OBJECTS_FOLDER).items()}


def open_replica(folder: Path) -> PublishedReplica | None:
    """The replica in a folder; None if the folder holds an ordinary library."""
    origin = read_origin(folder)
    return None if origin is None else PublishedReplica(folder, origin)


class Publisher:
    """A writer of a shard: holds its lease, which a thread renews, and publishes changes regularly and at the end.

    A lease whose holder has this writer's own id can be taken at once: a replica has one writer at a time, so that
    holder is dead.
    """

    def __init__(self, replica: ShardReplica, holder: str) -> None:
        self._replica, self._objects, self._holder = replica, replica.objects, holder
        self._state: ShardState
        """The state that this writer last read from or wrote to the store, and the version mark of its object."""
        self._mark: str
        self._unsure: dict[bytes, ShardState] = {}
        """Writes that the store did not confirm, but may have made, or may still make."""
        self._since = time.time()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True, name="shard-lease")

    def begin(self, wait: float) -> None:
        """Take the lease and read the shard's current state."""
        self.take(wait)
        try:
            self._replica.pull_locked(self._state)
        except BaseException:
            self.give_back()
            raise
        self._thread.start()

    def end(self) -> None:
        """Publish the changes and release the lease."""
        self._stop.set()
        self._thread.join()
        try:
            self.publish()
        finally:
            self.give_back()

    def take(self, wait: float = 0.0) -> None:
        """Take the lease; if another writer holds it, wait up to ``wait`` seconds, then raise an error naming it."""
        begun = seen = time.monotonic()
        last = ""
        while True:
            self._state, there = self._replica.remote_state()
            lease, now = self._state.lease, time.monotonic()
            if there.mark != last:
                seen, last = now, there.mark
            if lease is None or lease.holder == self._holder or lease.is_dead(now - seen):
                self._mark = there.mark
                with suppress(StaleObjectError):  # another writer was faster
                    self._put()
                    return
                continue
            if now - begun >= wait:
                raise LibraryBusyError(
                    f"{self._objects.address}: {lease.name} is changing this library (since "
                    f"{time.strftime('%H:%M:%S', time.localtime(lease.since))}, last renewed "
                    f"{max(0.0, time.time() - lease.at):.0f} s ago); wait for it, or say for how many seconds to wait "
                    f"({parameter('wait', 600)})"
                )
            time.sleep(min(POLL_SECONDS, wait))

    def renew(self, state: ShardState | None = None) -> None:
        """Renew the lease, and replace the shard's state if one is given; LibraryBusyError if the lease was taken."""
        try:
            self._put(state)
        except StaleObjectError:
            raise LibraryBusyError(
                f"{self._objects.address}: another machine has taken over, since the lease was not renewed for "
                f"{LEASE_SECONDS:.0f} s; what was done here since is not in it: run the command again"
            ) from None

    def give_back(self) -> None:
        """Release the lease; if the store cannot be reached, the lease expires later by itself."""
        with suppress(MomentseekError):
            self._put(keep=False)

    def publish(self) -> bool:
        """Publish the replica's content as the shard's; returns False if they are already equal."""
        with tempfile.TemporaryDirectory(dir=self._replica.folder, prefix=".publishing-") as work:
            copy = Path(work) / CATALOG_FILE
            copy_catalog(self._replica.folder, copy)
            sources: Sources = {}
            files = list_files_of(self._replica.folder, copy, self._state, sources)
            if files == self._state.files:
                return False
            have, wanted = self._state.chunks, ShardState(files).chunks
            upload_chunks(self._objects, {hash: sources[hash] for hash in wanted if hash not in have})
        old = [hash for hash in self._state.dropped if hash not in wanted]
        self.renew(ShardState(files, dropped=tuple(sorted(have.keys() - wanted.keys()))))
        self._replica.set_base(self._state)
        self._objects.delete(f"{OBJECTS_FOLDER}/{hash}" for hash in old)
        return True

    def _put(self, state: ShardState | None = None, *, keep: bool = True) -> None:
        """Replace the shard's state if it is the one that this writer knows; otherwise raise StaleObjectError.

        Without a new state, the current one is written again, with the lease or, at the end, without it.
        """
        name = f"process {os.getpid()} on {platform.node() or 'another machine'}"
        lease = Lease(self._holder, name, self._since, time.time()) if keep else None
        for known in (False, True):
            wanted = replace(state or self._state, lease=lease)
            data = wanted.to_bytes()
            try:
                self._mark = self._objects.replace(STATE_FILE, data, self._mark)
                break
            except StoreUnreachableError:
                self._unsure[data] = wanted
                raise
            except StaleObjectError:  # or it is our own: the answer was lost, and the request repeated
                there = self._objects.read(STATE_FILE)
                if known or there.data not in (data, *self._unsure):
                    raise
                self._mark = there.mark
                if there.data == data:
                    break
                self._state = self._unsure[there.data]
                self._replica.set_base(self._state)
        self._state = wanted
        self._unsure.clear()

    def _keep(self) -> None:
        """Renew the lease and publish regularly until the work ends; errors are reported at the end."""
        published, took = time.monotonic(), 0.0
        while not self._stop.wait(RENEW_SECONDS):
            try:
                self.renew()
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
            ):  # a segment was merged meanwhile, or the store cannot be reached
                continue


def list_files_of(folder: Path, catalog: Path, base: ShardState | None, sources: Sources) -> Files:
    """List the files of a shard's folder with this copy of its catalog; ``sources`` receives where to read each chunk
    that the base does not have.
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
            raise MomentseekError(f"{folder / path}: does not exist; run: momentseek verify")
        files[path] = (Chunk(name, size),)
        sources[name] = folder / path
    for part in (MODELS_FOLDER, PLAN_FOLDER):
        here = sorted(path for path in (folder / part).rglob("*") if _is_content(path, folder / part))
        if part == PLAN_FOLDER and not (folder / part / "plan.json").is_file():  # not fetched, so not changed
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
    """Whether a path is a finished file; the name of one that is being written starts with a dot."""
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(top).parts)


def _orphans(state: ShardState, there: Mapping[str, int]) -> list[str]:
    """Objects that neither the state nor the previous one names; readers may still need those of the previous one."""
    return sorted(there.keys() - state.chunks.keys() - set(state.dropped))
