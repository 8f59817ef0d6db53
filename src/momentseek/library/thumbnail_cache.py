"""Thumbnails that were made once, kept in the library's folder up to a number of bytes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError

MAX_CACHE_BYTES = 256 * 2**20
"""Size of all thumbnails together; some thirty thousand of the usual width."""
TRIMMED_SHARE = 0.9
"""Share of the limit that stays when the oldest are deleted, so that this is seldom done."""
THUMBNAILS_PER_SCAN = 64
"""Thumbnails after which the folder is read again: other threads and processes keep theirs there too."""


class ThumbnailCache:
    """Keeps thumbnails in a folder. One that cannot be written is no error: it is made again the next time."""

    def __init__(self, folder: Path, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._bytes = 0
        self._until_scan = 0

    def get(self, name: str) -> bytes | None:
        """The thumbnail of that name; None if it is not kept."""
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None

    def keep(self, name: str, data: bytes) -> None:
        """Keep a thumbnail; if all together become too large, the oldest ones are deleted."""
        with suppress(OSError, MomentseekError):
            self.folder.mkdir(exist_ok=True)
            write_bytes(self.folder / name, data, flush=False)
        self._bytes += len(data)
        self._until_scan -= 1
        if self._bytes > self.max_bytes or self._until_scan < 0:
            self._bytes = self._trim()
            self._until_scan = THUMBNAILS_PER_SCAN

    def _trim(self) -> int:
        """Delete the oldest thumbnails until they are well below the limit; returns the bytes that are left."""
        files: list[tuple[int, str, int]] = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    state = entry.stat(follow_symlinks=False)
                    files.append((state.st_mtime_ns, entry.path, state.st_size))
        total = sum(size for *_, size in files)
        if total <= self.max_bytes:
            return total
        for _, path, size in sorted(files):
            if total <= TRIMMED_SHARE * self.max_bytes:
                break
            with suppress(OSError):  # another thread may have deleted it
                os.unlink(path)
            total -= size
        return total
