"""ReplicaFiles: the files of a shard in object storage that are in its replica here, and those that are fetched."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from momentseek.atomic import write_bytes
from momentseek.errors import LibraryError
from momentseek.library.replicas.eviction import evict_segments
from momentseek.library.replicas.fetching import fetch_files, missing_files
from momentseek.library.replicas.place import Origin, read_origin
from momentseek.library.replicas.state import PLAN_FOLDER, STATE_FILE, Files, ShardState, read_state, segment_path
from momentseek.storage.objects import ObjectStore
from momentseek.storage.opening import open_objects

PLAN_FILE = f"{PLAN_FOLDER}/plan.json"
"""Names the other files of the plan, so it is fetched after them."""


class ReplicaFiles:
    """The folder of a replica, and the objects of the shard that it is a replica of."""

    def __init__(self, folder: Path, origin: Origin) -> None:
        self.folder, self.origin = folder, origin
        self._objects: ObjectStore | None = None
        self.writes = False
        """Whether this process changes the replica now."""

    @property
    def objects(self) -> ObjectStore:
        """The shard's objects."""
        if self._objects is None:
            self._objects = open_objects(self.origin.address)
        return self._objects

    def base(self) -> ShardState | None:
        """The state that the replica was last equal to; a local writer may have added to it since."""
        path = self.folder / STATE_FILE
        try:
            return read_state(path.read_bytes(), str(path))
        except (OSError, LibraryError):
            return None

    def set_base(self, state: ShardState) -> None:
        """Note that the replica is equal to a state."""
        write_bytes(self.folder / STATE_FILE, state.to_bytes(), flush=False)

    def size(self) -> int:
        """Size of all files of the shard in bytes, also of those that are not here."""
        base = self.base()
        return 0 if base is None else sum(chunk.size for chunk in base.chunks.values())

    def fetch_vectors(self, names: Iterable[str]) -> int:
        """Fetch segments by their names, and the plan, as far as they are not here; returns the number of bytes."""
        base = self.base()
        if base is None:
            return 0
        paths = [segment_path(name) for name in names]
        wanted = {path: base.files[path] for path in paths if path in base.files}  # others were made here
        if not (self.writes and (self.folder / PLAN_FILE).is_file()):  # which may have been made anew here
            wanted |= base.below(PLAN_FOLDER)
        return self.fetch(wanted)

    def fetch(self, files: Files) -> int:
        """Fetch those of the files that are not here, and make room for them; returns the number of bytes."""
        missing = missing_files(self.folder, files)
        last = {path: missing.pop(path) for path in [PLAN_FILE] if path in missing}
        total = sum(fetch_files(self.objects, self.folder, some) for some in (missing, last) if some)
        for path in files:
            with suppress(OSError):
                os.utime(self.folder / path)
        if total:
            evict_segments(self.folder.parent.parent, keep={self.folder / path for path in files})
        return total


def fetch_missing_segment(segments: Path, name: str) -> None:
    """Fetch a segment that is not in its folder, if that is a replica's."""
    origin = read_origin(segments.parent)
    if origin is not None:
        files = ReplicaFiles(segments.parent, origin)
        base, path = files.base(), segment_path(name)
        if base is not None and path in base.files:
            files.fetch({path: base.files[path]})
