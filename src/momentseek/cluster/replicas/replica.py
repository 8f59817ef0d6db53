"""ShardReplica: a local copy of a shard in object storage, updated when it is opened and while it is read."""

from __future__ import annotations

import math
import os
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from momentseek.cluster.manifest import (
    MANIFEST_FILE,
    ShardManifest,
    is_sharded,
    parse_manifest,
    read_manifest,
    write_manifest,
)
from momentseek.cluster.replicas.fetching import do_at_once, fetch_joined
from momentseek.cluster.replicas.files import ReplicaFiles
from momentseek.cluster.replicas.place import (
    make_origin,
    make_replica_folder,
    shard_folder,
)
from momentseek.cluster.replicas.state import MODELS_FOLDER, STATE_FILE, ShardState, read_state
from momentseek.cluster.storage.address import StoreUnreachableError
from momentseek.cluster.storage.objects import (
    MissingObjectError,
    ObjectStore,
    StoredObject,
    join_address,
    parent_address,
)
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.database import BUSY_SECONDS, CATALOG_FILE, DATABASE_ERRORS, unusable
from momentseek.library.location import address_of, folder_here
from momentseek.library.paths import LibraryPaths, hold_lock

SQLITE_MAGIC = b"SQLite format 3\0"
"""The first bytes of an SQLite database."""


def copy_catalog(folder: Path, target: Path) -> None:
    """Write the catalog of a library as one file; equal content gives equal bytes, page by page."""
    path = folder / CATALOG_FILE
    target.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as source, closing(sqlite3.connect(target)) as copy:
            copy.execute("PRAGMA synchronous = OFF")
            source.backup(copy)
    except DATABASE_ERRORS as e:
        raise unusable(path, e) from None


def has_catalog(folder: Path) -> bool:
    """Whether a folder has a catalog that starts like an SQLite database (after a power cut it may not)."""
    try:
        with (folder / CATALOG_FILE).open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError:
        return False


def install_catalog(fresh: Path, folder: Path) -> None:
    """Make a file the catalog of a library; an existing catalog, which others may read, changes in one transaction."""
    path = folder / CATALOG_FILE
    try:
        if not has_catalog(folder):
            for end in ("-wal", "-shm"):
                path.with_name(f"{CATALOG_FILE}{end}").unlink(missing_ok=True)
            fresh.replace(path)
            return
        address = f"{fresh.absolute().as_uri()}?mode=ro&immutable=1"
        with (
            closing(sqlite3.connect(address, uri=True)) as source,
            closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as old,
        ):
            source.backup(old)
    except DATABASE_ERRORS as e:
        raise unusable(path, e) from None


LOCAL_WAIT_SECONDS = 600.0
"""Seconds that the first reader waits for another process that is creating the replica."""
FRESH_SECONDS = 10.0
"""Seconds after which a reader checks the shard for changes again."""
MAX_PULLS = 10
"""How many times a state is read again if its objects were deleted meanwhile."""


_equal: dict[Path, float] = {}
"""Folder of a replica → when it was last known to equal its shard (monotonic clock)."""
AWAY_SECONDS = 30.0
"""Seconds for which readers do not ask a store again that did not answer, so that not every search waits for it."""
_away: dict[str, tuple[float, float]] = {}
"""Address of a library whose store did not answer → when to ask again (monotonic), and since when (Unix time)."""


def note_unreachable(address: str) -> None:
    """Record that the store of the library at an address does not answer."""
    since = _away[address][1] if address in _away else time.time()
    _away[address] = time.monotonic() + AWAY_SECONDS, since


class ShardReplica(ReplicaFiles):
    """A shard in object storage, and its local copy: an ordinary library in a folder.

    The replica is changed under its own lock, like any library: by a local writer, or by taking over the shard's state
    when the shard has changed elsewhere. The catalog is replaced in one transaction, so readers of the replica never
    see half of a change.
    """

    @classmethod
    def at(cls, folder: Path, address: str) -> ShardReplica:
        """The replica in a folder of the shard at an address; a missing folder is created."""
        return cls(folder, make_origin(folder, address))

    def pull(self) -> bool:
        """Take over the shard's state if it differs from the replica's; returns whether it did.

        A replica that another local process is changing is up to date, and is left alone.
        """
        asked, state, base = time.monotonic(), self.remote_state()[0], self.base()
        made, changed = has_catalog(self.folder), False
        if not made or base is None or base.id != state.id:
            try:
                with hold_lock(self.folder, 0.0 if made else LOCAL_WAIT_SECONDS):
                    changed = self.pull_locked(state)
            except MomentseekError:
                if made and _is_locked(self.folder):
                    return False
                raise
        _equal[self.folder] = asked
        return changed

    def pull_locked(self, state: ShardState | None = None) -> bool:
        """Like ``pull``, for a caller that holds the replica's lock."""
        for attempt in range(MAX_PULLS):
            found = state if state is not None and not attempt else self.remote_state()[0]
            base = self.base()
            if base is not None and base.id == found.id and has_catalog(self.folder):
                return False
            try:
                self._adopt(found)
                return True
            except MissingObjectError:  # a writer has replaced the state and deleted unused objects
                if attempt + 1 == MAX_PULLS or self.remote_state()[0].id == found.id:
                    raise
        raise AssertionError

    def remote_state(self) -> tuple[ShardState, StoredObject]:
        """Read the shard's state, and the object that contains it."""
        try:
            found = self.objects.read(STATE_FILE)
        except MissingObjectError:
            above, name = parent_address(self.origin.address)
            raise LibraryError(f"{above}: the shard {name} is missing; restore its objects") from None
        return read_state(found.data, f"{self.origin.address}/{STATE_FILE}"), found

    def freshen(self) -> None:
        """Take over the shard's state if it was not checked recently; if the store does not answer, try again later."""
        now, library = time.monotonic(), parent_address(self.origin.address)[0]
        due = _away[library][0] if library in _away else _equal.get(self.folder, -math.inf) + FRESH_SECONDS
        if self.writes or now < due:
            return
        try:
            self.pull()
        except MomentseekError:  # the next process that opens the library gets the message
            note_unreachable(library)
        else:
            _away.pop(library, None)

    def why_outdated(self) -> str:
        """Why the replica may be outdated; empty if the store answered the last request."""
        library = parent_address(self.origin.address)[0]
        if library not in _away:
            return ""
        since = time.strftime("%H:%M:%S", time.localtime(_away[library][1]))
        return f"{library} cannot be reached (since {since}), so this is the copy here, which may be old"

    def ensure_vectors(self, names: Callable[[], Iterable[str]]) -> None:
        """Fetch the named segments and the plan, even if a writer elsewhere replaces them meanwhile."""
        for attempt in range(MAX_PULLS):
            before = self.base()
            try:
                self.fetch_vectors(names())
                return
            except MissingObjectError:
                newer = self.pull() or self.base() != before  # perhaps by another local thread or process
                if attempt + 1 == MAX_PULLS or not (newer or _is_locked(self.folder)):
                    raise

    def _adopt(self, state: ShardState) -> None:
        paths = LibraryPaths(self.folder)
        paths.make()
        self.fetch(state.below(MODELS_FOLDER))
        fresh = self.folder / f".{CATALOG_FILE}.{os.getpid()}"
        try:
            fetch_joined(self.objects, state.files[CATALOG_FILE], fresh, self.folder / CATALOG_FILE)
            install_catalog(fresh, self.folder)
        except OSError as e:
            raise MomentseekError(f"{fresh}: cannot be written ({e.strerror}); make room or check the rights") from None
        finally:
            fresh.unlink(missing_ok=True)
        self.set_base(state)
        catalog = Catalog(self.folder)
        try:
            paths.drop_orphans(catalog)
        finally:
            catalog.close()


def _is_locked(folder: Path) -> bool:
    try:
        with hold_lock(folder):
            return False
    except MomentseekError:
        return True


SHARDS_AT_ONCE = 16


def update_replica(folder: Path) -> bool:
    """Update the replica of a library; returns False if the folder is not a replica.

    If the store does not answer, a complete replica is left as it is, and searches say so.
    """
    address = address_of(folder)
    if address is None:
        return False

    def bring(name: str) -> None:
        ShardReplica.at(folder / name, join_address(address, name)).pull()

    try:
        do_at_once(bring, fetch_manifest(folder, address).shards, SHARDS_AT_ONCE)
        _away.pop(address, None)
    except StoreUnreachableError:
        if not (is_sharded(folder) and all(map(_is_whole, read_manifest(folder).folders(folder)))):
            raise
        note_unreachable(address)
    return True


def _is_whole(shard: Path) -> bool:
    return has_catalog(shard) and (shard / STATE_FILE).is_file()


def fetch_manifest(folder: Path, address: str) -> ShardManifest:
    """Copy the manifest of the library at an address into the folder of its replica, and return it."""
    objects = ObjectStore(address)
    try:
        data = objects.read(MANIFEST_FILE).data
    except MissingObjectError:
        raise LibraryError(_no_library(objects)) from None
    manifest = parse_manifest(data, f"{address}/{MANIFEST_FILE}")
    path = folder / MANIFEST_FILE
    if not path.is_file() or path.read_bytes() != data:
        make_replica_folder(folder)
        write_bytes(path, data)
    return manifest


def store_manifest(folder: Path, manifest: ShardManifest) -> None:
    """Write the manifest of a library into its folder and, for a replica, into object storage."""
    write_manifest(folder, manifest)
    address = address_of(folder)
    if address is not None:
        ObjectStore(address).write(MANIFEST_FILE, (folder / MANIFEST_FILE).read_bytes())


def update_shard(place: str) -> Path:
    """The local folder of a shard, given by its folder or address; a replica is updated first."""
    folder = shard_folder(place)
    address = address_of(folder.parent)
    if address is not None:
        try:
            ShardReplica.at(folder, join_address(address, folder.name)).pull()
        except StoreUnreachableError:
            if not _is_whole(folder):
                raise
            note_unreachable(address)
    return folder


def _no_library(objects: ObjectStore) -> str:
    make = f"momentseek shard {shlex.quote(objects.address)} --shards 8"
    try:
        objects.read(CATALOG_FILE)
    except MissingObjectError:
        return f"{objects.address}: has no library; make one with: {make}"
    return (
        f"{objects.address}: holds a library that is not in shards; copy it to a folder, and run: {make} --from FOLDER"
    )


def refuse_unsharded(library: Path) -> None:
    """Refuse a library that is not in shards."""
    if not (update_replica(library) or is_sharded(library)):
        raise LibraryError(
            f"{library}: is no library in shards, which work on a cluster needs; make one with: momentseek shard"
            f"{folder_here(library)}"
        )
