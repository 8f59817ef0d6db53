"""Publisher: what a writer changed in a replica, made the shard's state in object storage.

New objects go first, the state that names them last, and only if it is still the one that the writer began with. A
writer that dies in between leaves the old state, and objects that nothing names.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from momentseek.errors import LibraryBusyError, MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.checksums import checksum
from momentseek.library.database import CATALOG_FILE
from momentseek.library.replicas.catalogs import copy_catalog
from momentseek.library.replicas.fetching import Piece, do_at_once
from momentseek.library.replicas.lease import RENEW_SECONDS, ShardLease
from momentseek.library.replicas.replica import ShardReplica
from momentseek.library.replicas.state import (
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
from momentseek.storage.objects import ObjectStore, StaleObjectError, file_size

Sources = dict[str, Path | Piece]
"""Where to read each chunk, by its hash."""
PUBLISH_SECONDS = 60.0
"""How often a long work is published while it goes on …"""
PUBLISH_SHARE = 0.1
"""… but never so often that publishing takes a larger share of the time."""


@contextmanager
def publishing(replica: ShardReplica, wait: float, holder: str | None = None) -> Iterator[None]:
    """Be the only writer of a shard for the time of a ``with``, and publish at its end what was changed.

    The caller holds the replica's lock. What was committed is published also when the work is stopped; what cannot be
    published stays in the replica, and is published by the next writer here if the shard is as it was.
    """
    publisher = Publisher(replica, holder or replica.origin.replica)
    publisher.begin(wait)
    replica.writes = True
    try:
        yield
    finally:
        replica.writes = False
        publisher.end()


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
