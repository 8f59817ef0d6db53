"""Files pinned by path, size and time; no link in any part of the path is followed.

The check is made on the open file, not on its name, so that the file cannot be replaced between check and use.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import cast

from momentseek.core.errors import MediaError

_WALKS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # a pipe in the file's place must not block
_FILE_FLAGS = os.O_RDONLY | _NO_WAIT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_PASSAGE_FLAGS = _FOLDER_FLAGS | getattr(os, "O_PATH", 0)  # a parent folder need not be readable
_LINK_ERRORS = (errno.ELOOP, errno.ENOTDIR)


class FileChangedError(MediaError):
    """A file that is not the pinned one: a link leads to it, or it has changed since."""


@dataclass(frozen=True)
class PinnedFile(os.PathLike[str]):
    """A regular file that is opened without following links; with a size and time, only if they still match.

    All functions that open media or subtitles accept one instead of a path. ``path`` is absolute and without links.
    """

    path: Path
    size: int | None = None
    mtime_ns: int | None = None

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.name

    def open(self, mode: str = "rb", buffering: int = -1) -> BufferedReader:
        """Open the file for reading bytes; raise FileChangedError if it is not the pinned one."""
        return cast("BufferedReader", open(self.path, mode, buffering, opener=lambda *_: self.descriptor()))

    def stat(self) -> os.stat_result:
        """Return the file's ``stat``; raise OSError if it does not exist."""
        handle = self.descriptor()
        try:
            return os.fstat(handle)
        finally:
            os.close(handle)

    def descriptor(self) -> int:
        """Return a descriptor of the open file, which the caller closes; raise OSError if it does not exist."""
        handle = _open_file(self.path)
        try:
            self._check(os.fstat(handle))
        except BaseException:
            os.close(handle)
            raise
        return handle

    def is_there(self) -> bool:
        """Whether the file can be opened now and has not changed."""
        try:
            self.stat()
        except (OSError, ValueError, MediaError):
            return False
        return True

    def _check(self, state: os.stat_result) -> None:
        if not stat.S_ISREG(state.st_mode):
            raise FileChangedError(f"{self.path}: is not a regular file; only files are read")
        if (self.size is not None and state.st_size != self.size) or (
            self.mtime_ns is not None and state.st_mtime_ns != self.mtime_ns
        ):
            raise FileChangedError(f"{self.path}: has changed since it was added; add it again")


@contextmanager
def open_folder(path: Path) -> Iterator[int | Path]:
    """Open a folder for ``os.scandir`` without following links; yield its path if the system does not support that."""
    if not (_WALKS and os.scandir in os.supports_fd):
        _refuse_links(path)
        yield path
        return
    handle = _walk(path, _FOLDER_FLAGS)
    try:
        yield handle
    finally:
        os.close(handle)


def _open_file(path: Path) -> int:
    if _WALKS:
        return _walk(path, _FILE_FLAGS)
    _refuse_links(path)
    handle = os.open(path, _FILE_FLAGS)
    if os.path.samestat(os.fstat(handle), os.lstat(path)):
        return handle
    os.close(handle)
    raise _behind_link(path)


def _walk(path: Path, flags: int) -> int:
    """Open an absolute path folder by folder; none of them may be a link."""
    *passages, last = path.parts[1:] or (".",)
    here = os.open(path.anchor, _PASSAGE_FLAGS)
    try:
        for part in passages:
            below = os.open(part, _PASSAGE_FLAGS, dir_fd=here)
            os.close(here)
            here = below
        return os.open(last, flags, dir_fd=here)
    except OSError as e:
        if e.errno in _LINK_ERRORS:
            raise _behind_link(path) from None
        raise
    finally:
        os.close(here)


def _refuse_links(path: Path) -> None:
    if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
        raise _behind_link(path)


def _behind_link(path: Path) -> FileChangedError:
    return FileChangedError(f"{path}: is a link now, or lies behind one, and links are not followed; add it again")
