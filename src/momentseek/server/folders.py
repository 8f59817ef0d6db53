"""Folders from which videos may be added; clients know them only by opaque ids.

The server makes an id when it lists a folder; a request can name nothing else, so no path ever comes from outside.
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

from momentseek.core.pinned_file import FileChangedError, open_folder
from momentseek.library.file_stamp import path_text
from momentseek.library.files import VIDEO_SUFFIXES
from momentseek.server.errors import ApiError

MAX_LISTED_FOLDERS = 1000
"""Largest number of subfolders that are listed of one folder."""
DRIVE_PLACES = ("/Volumes", "/media", "/mnt")
"""Folders in which systems mount drives."""
MAX_KNOWN_FOLDERS = 100_000
"""Largest number of ids that are remembered."""


@dataclass(frozen=True)
class ListedFolder:
    """A folder that was listed under an id; ``root`` is the top folder that it lies in."""

    id: str
    path: Path
    root: Path

    @property
    def name(self) -> str:
        """The last part of the folder's path."""
        return path_text(self.path.name or self.path)


class FolderIds:
    """The ids of the folders listed so far. Links are not followed, so nothing outside the roots can be reached."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, ListedFolder] = {}
        self._lock = threading.Lock()

    def mint(self, path: Path, root: Path) -> ListedFolder:
        """Give a folder its id, which stays the same while the server runs."""
        text = os.fsencode(root) + b"\0" + os.fsencode(path)
        folder = ListedFolder(hmac.new(self._secret, text, hashlib.sha256).hexdigest()[:24], path, root)
        with self._lock:
            if len(self._known) >= MAX_KNOWN_FOLDERS:
                self._known.clear()  # clients that browse list again from the top
            self._known[folder.id] = folder
        return folder

    def get(self, id: str) -> ListedFolder | None:
        """The folder with an id, if it was listed and still exists."""
        with self._lock:
            folder = self._known.get(id)
        return folder if folder is not None and is_folder(folder.path) else None

    def parent(self, folder: ListedFolder) -> ListedFolder | None:
        """The folder above, or None above a root."""
        return None if folder.path == folder.root else self.mint(folder.path.parent, folder.root)

    def below(self, folder: ListedFolder, names: Iterable[str]) -> list[ListedFolder]:
        """Return the direct subfolders of a folder with these names, and give each an id."""
        return [self.mint(folder.path / name, folder.root) for name in names]


def find_folder(known: FolderIds, id: str) -> ListedFolder:
    """The folder with an id; 404 if none was listed under it."""
    found = known.get(id)
    if found is None:
        raise ApiError(404, "there is no such folder; GET /api/v1/folders lists the ids")
    return found


def root_folders(paths: Iterable[Path]) -> list[Path]:
    """The folders of some files, without those that lie inside another of them.

    >>> [str(p) for p in root_folders([Path("/a/b/1.mp4"), Path("/a/2.mp4"), Path("/c/3.mp4")])]
    ['/a', '/c']
    """
    roots: list[Path] = []
    for folder in sorted({path.parent for path in paths}):
        if not any(folder.is_relative_to(root) for root in roots):
            roots.append(folder)
    return roots


def home_folders() -> list[Path]:
    """Folders in which people have videos: the home folder and connected drives."""
    drives = [drive for place in DRIVE_PLACES for drive in sorted(Path(place).glob("*")) if drive.is_dir()]
    return [folder.resolve() for folder in (Path.home(), *drives)]


@dataclass(frozen=True)
class ListingBudget:
    """A limit on the number of files and folders to examine, and on the time.

    It bounds the cost of a huge tree or a slow drive. ``until`` is a time of ``clock``.
    """

    entries: int
    until: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def of(cls, entries: int, seconds: float) -> ListingBudget:
        """A budget of a number of entries and seconds from now on."""
        return cls(entries, time.monotonic() + seconds)

    def less(self, entries: int) -> ListingBudget:
        """The budget that is left after a number of entries."""
        return replace(self, entries=self.entries - entries)

    def share(self, of: int) -> ListingBudget:
        """An equal share of the budget for one of ``of`` folders."""
        now = self.clock()
        return replace(self, entries=self.entries // of, until=now + (self.until - now) / of)


@dataclass(frozen=True)
class FolderContents:
    """The contents of a folder: names of its folders, number of videos, and whether the listing is complete."""

    folders: tuple[str, ...]
    videos: int
    complete: bool
    examined: int
    """Number of entries that were examined."""


def list_folder(folder: Path, budget: ListingBudget) -> FolderContents:
    """List one folder while the budget lasts; hidden folders and links are skipped."""
    names: list[str] = []
    videos = examined = 0
    complete = True
    for entry in _entries(folder):
        if examined >= budget.entries or budget.clock() >= budget.until:
            complete = False
            break
        examined += 1
        if _is_plain_folder(entry):
            names.append(entry.name)
        elif _is_plain_video(entry):
            videos += 1
    return FolderContents(tuple(sorted(names, key=os.fsencode)), videos, complete, examined)


def count_videos(folder: Path, budget: ListingBudget) -> FolderContents:
    """Count the videos in a folder and below it; ``complete`` is false if the budget ran out before the end."""
    videos = examined = 0
    waiting = [folder]
    while waiting:
        at = waiting.pop()
        one = list_folder(at, budget.less(examined))
        videos += one.videos
        examined += one.examined
        if not one.complete:
            return FolderContents((), videos, False, examined)
        waiting += [at / name for name in one.folders]
    return FolderContents((), videos, True, examined)


def count_videos_each(folders: Sequence[Path], budget: ListingBudget) -> list[FolderContents]:
    """Count the videos of several folders, each with an equal share of the budget that is left."""
    counted: list[FolderContents] = []
    for at, folder in enumerate(folders):
        counted.append(count_videos(folder, budget.share(len(folders) - at)))
        budget = budget.less(counted[-1].examined)
    return counted


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with open_folder(folder) as place, os.scandir(place) as entries:
            yield from entries
    except (OSError, FileChangedError):
        return


def _is_plain_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_plain_video(entry: os.DirEntry[str]) -> bool:
    """Whether an entry looks like a video that can be added: not a link, and with a video's suffix."""
    if entry.name.startswith(".") or os.path.splitext(entry.name)[1].lower() not in VIDEO_SUFFIXES:
        return False
    try:
        return not entry.is_symlink()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether a path is a folder that can be read now, without a link in the path."""
    try:
        with open_folder(path):
            return path.is_dir()
    except (OSError, ValueError, FileChangedError):
        return False
