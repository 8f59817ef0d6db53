"""Stamp: tells whether a file has changed; and paths as text."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from momentseek.core.errors import MediaError
from momentseek.core.pinned_file import PinnedFile

HASH_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Stamp:
    """Size, time and inode of a file, which change when the file is written to or replaced."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path | PinnedFile) -> Stamp:
        """The stamp of a file; MediaError if it is not a regular file that can be read."""
        try:
            state = path.stat()
        except (OSError, ValueError) as e:
            reason = getattr(e, "strerror", None) or e
            raise MediaError(f"{printable(path)}: cannot be read ({reason})") from None
        if not stat.S_ISREG(state.st_mode):
            raise MediaError(f"{printable(path)}: is a {file_kind(state.st_mode)}, not a file; only files are read")
        return cls(state.st_size, state.st_mtime_ns, state.st_ino)


def file_kind(mode: int) -> str:
    """The kind of a file, in a word, from its mode.

    >>> file_kind(stat.S_IFIFO)
    'pipe'
    """
    kinds = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
    return kinds.get(stat.S_IFMT(mode), "folder" if stat.S_ISDIR(mode) else "special file")


def content_hash(path: Path | PinnedFile) -> str:
    """The hash of a file's bytes (BLAKE2b, 128 bits)."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb", buffering=0) as file:
            buffer = bytearray(HASH_BLOCK_BYTES)
            view = memoryview(buffer)
            while count := file.readinto(view):
                digest.update(view[:count])
    except OSError as e:
        raise MediaError(f"{printable(path)}: cannot be read ({e.strerror})") from None
    return digest.hexdigest()


def printable(path: str | os.PathLike[str]) -> str:
    r"""A path as one line of text, whatever bytes it is made of.

    >>> printable("a\nb"), printable(os.fsdecode(b"caf\xe9.mp4"))
    ('a\\nb', 'caf\\xe9.mp4')
    """
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def path_text(path: str | os.PathLike[str]) -> str:
    """A path as valid text; invalid bytes become the replacement character."""
    return os.fsencode(path).decode("utf-8", "replace")
