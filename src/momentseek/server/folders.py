"""Folders from which videos may be added, known to clients by opaque ids only.

The server mints an id when it lists a folder; a request can name nothing else, so no path ever comes from outside.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from momentseek.library.files import SUFFIXES
from momentseek.library.stamp import readable

MOST_LOOKED_AT = 20_000
"""Files and folders looked at to count the videos in one; beyond it the count says "at least"."""
MOST_LISTED = 1000
"""Folders listed in one."""
MOST_KNOWN = 100_000


@dataclass(frozen=True)
class Folder:
    """A folder that was listed. ``root`` is the one from the command line that it lies in."""

    id: str
    path: Path
    root: Path

    @property
    def name(self) -> str:
        """Its last part."""
        return readable(self.path.name or self.path)


class Folders:
    """The ids given out so far. Links are not followed, so nothing outside the roots is ever reached."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, Folder] = {}
        self._lock = threading.Lock()

    def mint(self, path: Path, root: Path) -> Folder:
        """The folder's id, always the same while the server runs."""
        text = os.fsencode(root) + b"\0" + os.fsencode(path)
        folder = Folder(hmac.new(self._secret, text, hashlib.sha256).hexdigest()[:24], path, root)
        with self._lock:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()  # clients that browse list again from the top
            self._known[folder.id] = folder
        return folder

    def get(self, id: str) -> Folder | None:
        """The folder, if it was listed and is still one."""
        with self._lock:
            folder = self._known.get(id)
        return folder if folder is not None and _is_folder(folder.path) else None

    def parent(self, folder: Folder) -> Folder | None:
        """The folder above; none above a root."""
        return None if folder.path == folder.root else self.mint(folder.path.parent, folder.root)

    def below(self, folder: Folder) -> list[Folder]:
        """The folders in it by name, without hidden ones and links."""
        names = [entry.name for entry in _entries(folder.path) if _plain_folder(entry)]
        return [self.mint(folder.path / name, folder.root) for name in sorted(names, key=os.fsencode)[:MOST_LISTED]]


def roots_of(paths: Iterable[Path]) -> list[Path]:
    """The folders of some files, without those that lie in another of them.

    >>> [str(p) for p in roots_of([Path("/a/b/1.mp4"), Path("/a/2.mp4"), Path("/c/3.mp4")])]
    ['/a', '/c']
    """
    roots: list[Path] = []
    for folder in sorted({path.parent for path in paths}):
        if not any(folder.is_relative_to(root) for root in roots):
            roots.append(folder)
    return roots


def count_videos(folder: Path) -> tuple[int, bool]:
    """How many files in it and below look like videos; and whether that is all, or where counting stopped."""
    count = looked = 0
    waiting = [folder]
    while waiting:
        for entry in _entries(waiting.pop()):
            looked += 1
            if looked > MOST_LOOKED_AT:
                return count, False
            if _plain_folder(entry):
                waiting.append(Path(entry.path))
            elif not entry.name.startswith(".") and os.path.splitext(entry.name)[1].lower() in SUFFIXES:
                count += 1
    return count, True


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _plain_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
