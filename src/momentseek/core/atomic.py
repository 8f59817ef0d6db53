"""Atomic writes: a file, or a set of files, appears complete or not at all, even after a power cut.

Written data, and a file's name in its folder, stay in the system's memory until they are flushed. So a file is flushed
before it is renamed, and its folder afterwards; then other files may rely on it.
"""

from __future__ import annotations

import errno
import gzip
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress

from momentseek.core.errors import MomentseekError

Path = str | os.PathLike[str]
FOLDERS_CANNOT_BE_FLUSHED = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES}
"""Errors of file systems that cannot flush a folder, and of folders that are writable but not readable."""


def write_bytes(path: Path, data: bytes, *, flush: bool = True, mode: int | None = None) -> None:
    """Write a file under a temporary name and rename it, so that it appears complete; ``.gz`` is compressed.

    ``flush=False`` is for files that may be lost or empty after a power cut, because they can be made again. ``mode``
    is the file's permissions; None means the default.
    """
    write_all({path: data}, flush=flush, mode=mode)


def append_lines(path: Path, lines: bytes) -> None:
    """Append lines to a file and wait until they are on disk; an incomplete last line is ended first."""
    try:
        with open(path, "a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                lines = lines if file.read(1) == b"\n" else b"\n" + lines
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())
    except OSError as e:
        raise MomentseekError(f"{path}: cannot be written ({e.strerror}); check the folder") from None


def write_all(files: Mapping[Path, bytes], *, flush: bool = True, mode: int | None = None) -> None:
    """Write several files or none: all are written under temporary names and flushed before the first is renamed."""
    waiting: list[tuple[pathlib.Path, pathlib.Path]] = []
    try:
        for path, data in files.items():
            target = pathlib.Path(path)
            waiting.append((_written_beside(target, data, flush, mode), target))
        for temporary, target in waiting:
            _rename(temporary, target)
        if flush:
            _flush_folders(target for _, target in waiting)
    finally:
        for temporary, _ in waiting:
            drop_temporary(temporary)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents durably, so that they survive a power cut."""
    path = pathlib.Path(folder)
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    path.mkdir(parents=True, exist_ok=True)
    for each in missing:
        flush_folder(each.parent)


def drop_temporary(path: pathlib.Path | None) -> None:
    """Delete a file that was not renamed, if it exists; errors are ignored."""
    if path is not None:
        with suppress(OSError):
            path.unlink()


def flush_file(handle: int) -> None:
    """Wait until an open file's bytes are on disk; on macOS, also until the disk confirms it."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        except OSError:  # not supported by the file system
            os.fsync(handle)
    else:
        os.fsync(handle)


def flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk; Windows does that by itself."""
    if os.name != "posix":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            flush_file(handle)
        finally:
            os.close(handle)
    except OSError as e:
        if e.errno not in FOLDERS_CANNOT_BE_FLUSHED:
            raise


def _flush_folders(targets: Iterable[pathlib.Path]) -> None:
    for folder, target in {target.parent: target for target in targets}.items():
        try:
            flush_folder(folder)
        except OSError as e:
            raise _unwritable(target, e) from None


def _rename(temporary: pathlib.Path, target: pathlib.Path) -> None:
    try:
        temporary.replace(target)
    except OSError as e:
        raise _unwritable(target, e) from None


def _unwritable(target: pathlib.Path, e: OSError) -> MomentseekError:
    return MomentseekError(f"{target}: cannot be written ({e.strerror}); check the folder")


def _written_beside(target: pathlib.Path, data: bytes, flush: bool, mode: int | None) -> pathlib.Path:
    if target.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    temporary = None
    try:
        if target.exists() and not target.is_file():
            what = "folder" if target.is_dir() else "device or pipe"
            raise MomentseekError(f"{target}: is a {what}; only files are replaced, so choose another name")
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = pathlib.Path(file.name)
            file.write(data)
            file.flush()
            if flush:
                flush_file(file.fileno())
        temporary.chmod(usual_mode(0o666) if mode is None else mode)
    except OSError as e:
        drop_temporary(temporary)
        raise _unwritable(target, e) from None
    return temporary


def usual_mode(mode: int) -> int:
    """Return the default permissions of a file (0o666) or folder (0o777) under the user's umask."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mode & ~mask
