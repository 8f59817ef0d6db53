"""Opening a library for changing it, be it one folder or in shards."""

from __future__ import annotations

import os
from pathlib import Path

from momentseek.library.reader import CLIP_SECONDS
from momentseek.library.shards.manifest import is_sharded
from momentseek.library.store import LibraryStore


def open_store(
    path: str | os.PathLike[str],
    *,
    create: bool | None = None,
    encoder: str | None = None,
    clip_seconds: float = CLIP_SECONDS,
    wait: float = 0.0,
) -> LibraryStore:
    """Open the library in a folder for changing it, be it one or in shards; the rest is as in ``LibraryStore.open``."""
    folder = Path(os.path.abspath(path))
    if is_sharded(folder):
        from momentseek.library.shards.store import open_sharded_store

        return open_sharded_store(folder, encoder=encoder, wait=wait)
    return LibraryStore.open(folder, create=create, encoder=encoder, clip_seconds=clip_seconds, wait=wait)
