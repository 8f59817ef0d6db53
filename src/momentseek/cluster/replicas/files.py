"""Fetch a shard's files into its replica, each checked by size and hash, and delete the least used to make room."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from momentseek.cluster.replicas.fetching import fetch_files, missing_files
from momentseek.cluster.replicas.place import Origin
from momentseek.cluster.replicas.state import (
    PLAN_FOLDER,
    SEGMENTS_FOLDER,
    STATE_FILE,
    Files,
    ShardState,
    read_state,
    segment_path,
)
from momentseek.cluster.storage.objects import ObjectStore
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import LibraryError, MomentseekError

SIZE_VARIABLE = "MOMENTSEEK_CACHE_GB"
DEFAULT_GIGABYTES = 50.0
SPARED_SECONDS = 60.0
"""Files used within this many seconds are not deleted, because another process may be about to open them."""


def cache_bytes() -> int:
    """Maximum size of the segments of all replicas in bytes: ``$MOMENTSEEK_CACHE_GB`` gigabytes, 50 by default."""
    given = os.environ.get(SIZE_VARIABLE, "")
    try:
        gigabytes = float(given) if given else DEFAULT_GIGABYTES
        if not gigabytes >= 0:
            raise ValueError
    except ValueError:
        raise MomentseekError(f"{SIZE_VARIABLE}={given}: is not a number of gigabytes; give one, such as 20") from None
    return int(gigabytes * 1e9)


def evict_segments(replicas: Path, keep: Set[Path] = frozenset(), now: float | None = None) -> int:
    """Delete the least used segments until all replicas together are small enough; returns the number of freed bytes.

    Only published segments are deleted, and none of ``keep``, even if those alone are too large.
    """
    found = []
    for path in replicas.glob(f"*/*/{SEGMENTS_FOLDER}/*"):
        with suppress(OSError):  # another process makes room too
            found.append((path, path.stat()))
    excess = sum(about.st_size for _, about in found) - cache_bytes()
    latest = (time.time() if now is None else now) - SPARED_SECONDS
    freed = 0
    published: dict[Path, set[str]] = {}
    for path, about in sorted(found, key=lambda item: item[1].st_mtime):
        if freed >= excess:
            break
        shard = path.parent.parent
        if path in keep or about.st_mtime > latest:
            continue
        if shard not in published:
            published[shard] = _published_files(shard)
        if f"{SEGMENTS_FOLDER}/{path.name}" in published[shard]:
            with suppress(OSError):
                path.unlink()
                freed += about.st_size
    return freed


def _published_files(shard: Path) -> set[str]:
    try:
        return set(read_state((shard / STATE_FILE).read_bytes(), str(shard)).files)
    except (OSError, MomentseekError):
        return set()


PLAN_FILE = f"{PLAN_FOLDER}/plan.json"
"""The file that names the other files of the plan; it is fetched last."""


class ReplicaFiles:
    """The folder of a replica, and the objects of its shard."""

    def __init__(self, folder: Path, origin: Origin) -> None:
        self.folder, self.origin = folder, origin
        self._objects: ObjectStore | None = None
        self.writes = False
        """Whether this process is changing the replica."""

    @property
    def objects(self) -> ObjectStore:
        """The shard's objects."""
        if self._objects is None:
            self._objects = ObjectStore(self.origin.address)
        return self._objects

    def base(self) -> ShardState | None:
        """The state of the shard that the replica last equalled; a local writer may have changed the replica since."""
        path = self.folder / STATE_FILE
        try:
            return read_state(path.read_bytes(), str(path))
        except (OSError, LibraryError):
            return None

    def set_base(self, state: ShardState) -> None:
        """Record that the replica equals a state of the shard."""
        write_bytes(self.folder / STATE_FILE, replace(state, lease=None).to_bytes(), flush=False)

    def size(self) -> int:
        """Size of all files of the shard in bytes, fetched or not."""
        base = self.base()
        return 0 if base is None else sum(chunk.size for chunk in base.chunks.values())

    def fetch_vectors(self, names: Iterable[str]) -> int:
        """Fetch the named segments and the plan, unless they are already here; returns the number of fetched bytes."""
        base = self.base()
        if base is None:
            return 0
        paths = [segment_path(name) for name in names]
        wanted = {path: base.files[path] for path in paths if path in base.files}  # others are not published yet
        if not (self.writes and (self.folder / PLAN_FILE).is_file()):  # it may have been built again here
            wanted |= base.below(PLAN_FOLDER)
        return self.fetch(wanted)

    def ensure_segment(self, name: str) -> None:
        """Fetch one segment, if the shard has it."""
        base, path = self.base(), segment_path(name)
        if base is not None and path in base.files:
            self.fetch({path: base.files[path]})

    def fetch(self, files: Files) -> int:
        """Fetch the missing files, after making room for them; returns the number of fetched bytes."""
        missing = missing_files(self.folder, files)
        last = {path: missing.pop(path) for path in [PLAN_FILE] if path in missing}
        total = sum(fetch_files(self.objects, self.folder, some) for some in (missing, last) if some)
        for path in files:
            with suppress(OSError):
                os.utime(self.folder / path)
        if total:
            evict_segments(self.folder.parent.parent, keep={self.folder / path for path in files})
        return total
