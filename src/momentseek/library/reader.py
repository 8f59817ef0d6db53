"""LibraryReader: a library's folder, opened: its catalog, the state of its segments, and its encoders."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from momentseek.library.catalog import Catalog
from momentseek.library.encoders import LibraryEncoders
from momentseek.library.names import select_videos
from momentseek.library.paths import LibraryPaths
from momentseek.library.replicas import ORIGIN_FILE
from momentseek.library.snapshot import Snapshot, take_snapshot
from momentseek.library.video import Failure, Video

if TYPE_CHECKING:
    from momentseek.library.replicas.replica import ShardReplica
    from momentseek.library.status import Status

CLIP_SECONDS = 1.5
"""Length of a clip of a library that is made without naming another."""


class LibraryReader:
    """A library that is open for reading; others may write to it meanwhile."""

    def __init__(self, path: Path, catalog: Catalog) -> None:
        self.path = path
        self.paths = LibraryPaths(path)
        self.catalog = catalog
        self.encoders = LibraryEncoders(catalog, self.paths)
        self._snapshot: Snapshot | None = None
        self.replica: ShardReplica | None = _replica(path)
        """The shard elsewhere that this library is a replica of; None if it is none."""

    def close(self) -> None:
        """Let go of the library's files."""
        self._snapshot = None
        self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def snapshot(self) -> Snapshot:
        """The segments that count now, and the ids of removed videos in them; the same object until that changes."""
        if self.replica is not None:
            self.replica.freshen()
        if self._snapshot is None or self._snapshot.generation != self.catalog.state():
            if self.replica is not None:
                self.replica.bring_vectors(lambda: [row.name for row in self.catalog.segments()])
            self._snapshot = take_snapshot(self.catalog, self.paths.segments)
            self.encoders.forget_others(self._snapshot.encoders)
        self._snapshot.check_sizes()
        return self._snapshot

    def videos(self) -> list[Video]:
        """All videos of the library, by id."""
        return self.catalog.videos()

    def failures(self) -> list[Failure]:
        """Files that could not be added, by path."""
        return self.catalog.failures()

    def matching(self, patterns: Iterable[str | os.PathLike[str]], *, missing: bool = False) -> list[Video]:
        """Videos by path, by a folder they lie in, or by a glob for their name; with ``missing``, also those whose
        file is not there. A pattern that matches nothing is refused.
        """
        return select_videos(self.videos(), [os.fspath(pattern) for pattern in patterns], missing)

    def status(self) -> Status:
        """Counts of what the library holds."""
        from momentseek.library.status import status

        found = status(self.catalog, self.paths)
        return found if self.replica is None else replace(found, size=self.replica.size())

    @property
    def clip_seconds(self) -> float:
        """Length of the library's clips, in seconds."""
        return float(self.catalog.get("clip_seconds", CLIP_SECONDS))


def _replica(folder: Path) -> ShardReplica | None:
    if not (folder / ORIGIN_FILE).is_file():
        return None
    from momentseek.library.replicas.replica import replica_of

    return replica_of(folder)
