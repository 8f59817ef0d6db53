"""Pictures: thumbnails that were made once, kept in the library's folder; no more than so many bytes of them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from momentseek.atomic import write_bytes
from momentseek.errors import MomentseekError

MOST_BYTES = 256 * 2**20
"""Of all pictures; some thirty thousand of the usual width."""
LEFT = 0.9
"""Share of that which stays when the oldest are deleted, so that this is seldom done."""
LOOK_EVERY = 64
"""Pictures after which the folder is looked at again: other threads and processes keep theirs there too."""


class Pictures:
    """Reads and keeps pictures in a folder. One that cannot be written is no fault: pictures are made again."""

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        self.folder = folder
        self.most = most
        self._bytes = 0
        self._until_look = 0

    def get(self, name: str) -> bytes | None:
        """A picture, if it is kept."""
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None

    def keep(self, name: str, data: bytes) -> None:
        """Keep a picture for the next time; where it is too much, the oldest ones go."""
        with suppress(OSError, MomentseekError):
            self.folder.mkdir(exist_ok=True)
            write_bytes(self.folder / name, data)
        self._bytes += len(data)
        self._until_look -= 1
        if self._bytes > self.most or self._until_look < 0:
            self._bytes = self._trimmed()
            self._until_look = LOOK_EVERY

    def _trimmed(self) -> int:
        """Delete the oldest until it is well below the most; the bytes that are left."""
        files: list[tuple[int, str, int]] = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    state = entry.stat(follow_symlinks=False)
                    files.append((state.st_mtime_ns, entry.path, state.st_size))
        total = sum(size for *_, size in files)
        if total <= self.most:
            return total
        for _, path, size in sorted(files):
            if total <= LEFT * self.most:
                break
            with suppress(OSError):  # another thread may have deleted it
                os.unlink(path)
            total -= size
        return total
