"""Things that take a while to make, kept in the cache with their checksum.

A file is the SHA-256 of its data, then the data: one read tells whether it is whole. Anything else (missing, cut off,
changed, another format) is made again, so the folder may be deleted at any time, and two processes that make the
same thing at once both succeed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from momentseek.encoders.folders import cache_folder
from momentseek.errors import MomentseekError

CHECKSUM_BYTES = 32
"""Bytes of a SHA-256."""


def load_or_make(name: str, key: str, make: Callable[[], bytes], folder: Path | None = None) -> bytes:
    """``make()``, or what it gave when last asked for this ``key``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     first = load_or_make("answer", "v1", lambda: b"42", Path(here))
    ...     again = load_or_make("answer", "v1", lambda: b"never called", Path(here))
    >>> first, again
    (b'42', b'42')
    """
    from momentseek.atomic import write_bytes

    folder = folder or cache_folder() / "made"
    path = folder / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    with suppress(OSError):
        found = path.read_bytes()
        if hashlib.sha256(found[CHECKSUM_BYTES:]).digest() == found[:CHECKSUM_BYTES]:
            return found[CHECKSUM_BYTES:]
    data = make()
    with suppress(OSError, MomentseekError):  # a folder that cannot be written costs the same time again
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(path, hashlib.sha256(data).digest() + data)
    return data
