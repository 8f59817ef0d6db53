"""Folders from which videos may be added, known to clients by opaque ids only.

The server mints an id when it lists a folder; a request can name nothing else, so no path ever comes from outside.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from momentseek.library.files import VIDEO_SUFFIXES
from momentseek.library.stamp import path_text
from momentseek.server.errors import ApiError

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
        return path_text(self.path.name or self.path)


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
        return folder if folder is not None and is_folder(folder.path) else None

    def parent(self, folder: Folder) -> Folder | None:
        """The folder above; none above a root."""
        return None if folder.path == folder.root else self.mint(folder.path.parent, folder.root)

    def below(self, folder: Folder, names: Iterable[str]) -> list[Folder]:
        """Folders in it by their names, as they were listed."""
        return [self.mint(folder.path / name, folder.root) for name in names]


def folder_of(known: Folders, id: str) -> Folder:
    """A folder by its id; 404 if none was listed under it."""
    found = known.get(id)
    if found is None:
        raise ApiError(404, "there is no such folder; ids are those that GET /api/v1/folders lists")
    return found


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


@dataclass(frozen=True)
class Budget:
    """How much may be looked at: so many files and folders, and until when.

    A huge tree or a slow drive costs no more than that.
    """

    entries: int
    until: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def of(cls, entries: int, seconds: float) -> Budget:
        """From now on."""
        return cls(entries, time.monotonic() + seconds)

    def less(self, looked: int) -> Budget:
        """What is left of it."""
        return replace(self, entries=self.entries - looked)

    def share(self, of: int) -> Budget:
        """The part of one of so many that wait."""
        now = self.clock()
        return replace(self, entries=self.entries // of, until=now + (self.until - now) / of)


@dataclass(frozen=True)
class Looked:
    """What lies in a folder: folders by name, files that look like videos; and whether that is all."""

    folders: tuple[str, ...]
    videos: int
    complete: bool
    looked: int
    """Entries that were looked at."""


def look(folder: Path, budget: Budget) -> Looked:
    """Look into one folder while the budget lasts; hidden folders and links are passed over."""
    names: list[str] = []
    videos = looked = 0
    complete = True
    for entry in _entries(folder):
        if looked >= budget.entries or budget.clock() >= budget.until:
            complete = False
            break
        looked += 1
        if _plain_folder(entry):
            names.append(entry.name)
        elif not entry.name.startswith(".") and os.path.splitext(entry.name)[1].lower() in VIDEO_SUFFIXES:
            videos += 1
    return Looked(tuple(sorted(names, key=os.fsencode)), videos, complete, looked)


def count_videos(folder: Path, budget: Budget) -> Looked:
    """Count the videos in a folder and below; where counting stopped, there are more than so many."""
    videos = looked = 0
    waiting = [folder]
    while waiting:
        at = waiting.pop()
        one = look(at, budget.less(looked))
        videos += one.videos
        looked += one.looked
        if not one.complete:
            return Looked((), videos, False, looked)
        waiting += [at / name for name in one.folders]
    return Looked((), videos, True, looked)


def count_each(folders: Sequence[Path], budget: Budget) -> list[Looked]:
    """Count several: each gets a fair share of what is left, so that the first one cannot use up everything."""
    counted: list[Looked] = []
    for at, folder in enumerate(folders):
        counted.append(count_videos(folder, budget.share(len(folders) - at)))
        budget = budget.less(counted[-1].looked)
    return counted


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


def is_folder(path: Path) -> bool:
    """Whether it is one now, and may be asked."""
    try:
        return path.is_dir()
    except OSError:
        return False
