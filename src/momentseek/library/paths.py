"""The files in a library's folder: where they are, the lock of its one writer, and the cache of thumbnails."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from momentseek.core.atomic import make_folder, write_bytes
from momentseek.core.errors import LibraryBusyError, MomentseekError, optional_module, parameter
from momentseek.library.catalog import Catalog
from momentseek.library.segments import SEGMENT_SUFFIX, TEMPORARY_PREFIX


class LibraryPaths:
    """The folder of a library, and the folders in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.segments = folder / "segments"
        """The vectors."""
        self.plan = folder / "plan"
        """The plan for scanning the clips of a large library …"""
        self.speech_plan = self.plan / "speech"
        """… and that for speech."""
        self.thumbnails = folder / "thumbnails"
        """Cached thumbnails, named by video."""
        self.previews = folder / "previews"
        """The previews that a server makes of videos that browsers cannot play."""
        self.models = folder / "models"
        """Copies of the trained models that make the vectors, each named by its fingerprint."""

    def make(self) -> None:
        """Create the library's folder and that of its segments."""
        try:
            make_folder(self.segments)
        except OSError as e:
            raise MomentseekError(
                f"{self.folder}: cannot be created ({e.strerror}); choose another folder ({parameter('library')})"
            ) from None

    def orphans(self, catalog: Catalog) -> list[Path]:
        """Files of segments that are not in the catalog, left by an interrupted writer or still mapped by a reader."""
        named = {row.name + SEGMENT_SUFFIX for row in catalog.segments()}
        with suppress(OSError), os.scandir(self.segments) as entries:
            return sorted(
                Path(e.path)
                for e in entries
                if e.name not in named and (e.name.endswith(SEGMENT_SUFFIX) or e.name.startswith(TEMPORARY_PREFIX))
            )
        return []

    def drop_orphans(self, catalog: Catalog) -> int:
        """Delete the orphans; returns their number. The caller holds the library's lock."""
        orphans = self.orphans(catalog)
        for path in orphans:
            with suppress(OSError):
                path.unlink()
        return len(orphans)


def clock_text(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    >>> clock_text(4800)
    '01:20:00'
    """
    whole = round(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def folder_size(folder: Path) -> int:
    """Size of all files in a folder and below it, in bytes."""
    total = 0
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                total += path.stat().st_size
        except OSError:
            continue
    return total


MAX_CACHE_BYTES = 256 * 2**20
"""Largest size of all thumbnails together; about thirty thousand of the usual width."""
TRIMMED_SHARE = 0.9
"""Share of the limit that remains after the oldest are deleted, so that this is seldom necessary."""
THUMBNAILS_PER_SCAN = 64
"""Number of thumbnails after which the folder is listed again, because other processes also write to it."""


class ThumbnailCache:
    """Caches thumbnails in a folder. A failure to write is ignored: the thumbnail is made again the next time."""

    def __init__(self, folder: Path, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._bytes = 0
        self._until_scan = 0

    def get(self, name: str) -> bytes | None:
        """The thumbnail with a name; None if it is not in the cache."""
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None

    def keep(self, name: str, data: bytes) -> None:
        """Store a thumbnail; if the cache becomes too large, the oldest ones are deleted."""
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


LOCK_FILE = "lock"
HOLDER_FILE = "lock.json"
"""The file that says who holds the lock, for messages only."""


@contextmanager
def hold_lock(folder: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the write lock of the library in a folder.

    If another process holds it, wait up to ``wait`` seconds, and then refuse, naming that process.

    The lock is the operating system's, so a process that dies, however it dies, releases it. Readers need no lock: they
    see the catalog between two transactions.
    """
    filelock = optional_module("filelock", "search")
    path, holder = folder / LOCK_FILE, folder / HOLDER_FILE
    if not folder.is_dir():
        raise MomentseekError(f"{path}: cannot be opened for writing, its folder does not exist; check the folder")
    try:
        lock = filelock.FileLock(path, timeout=wait, fallback_to_soft=False)
        lock.acquire()
    except filelock.Timeout:
        raise LibraryBusyError(
            f"{folder}: {_holder(holder)} is changing this library; wait for it, or set how many seconds to "
            f"wait ({parameter('wait', 600)})"
        ) from None
    except NotImplementedError:
        raise MomentseekError(f"{path}: this file system has no locks; use a local disk") from None
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be opened for writing ({e.strerror}); check the folder") from None
    try:
        mark = {"pid": os.getpid(), "host": platform.node(), "since": time.time()}
        with suppress(OSError):  # a full disk does not matter here
            holder.write_text(json.dumps(mark))
        yield
    finally:
        with suppress(OSError):
            holder.unlink()
        lock.release()


def _holder(path: Path) -> str:
    try:
        who = json.loads(path.read_bytes())
        since = time.strftime("%H:%M:%S", time.localtime(who["since"]))
        host = "" if who["host"] == platform.node() else f" on {who['host']}"
        return f"process {int(who['pid'])}{host} (since {since})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
