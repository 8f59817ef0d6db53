"""Opening a library for changing it, be it one folder or in shards."""

from __future__ import annotations

import os
from pathlib import Path

from momentseek.library.location import library_folder
from momentseek.library.reader import CLIP_SECONDS
from momentseek.library.shards.manifest import is_sharded
from momentseek.library.store import LibraryStore


def bring_folder(place: str | os.PathLike[str]) -> Path:
    """The folder of a library, given by its folder or its address; a replica is brought up to date."""
    folder = library_folder(os.fspath(place)) if "://" in os.fspath(place) else Path(os.path.abspath(place))
    if "%3A%2F%2F" in folder.name:
        from momentseek.library.replicas.opening import bring_library

        bring_library(folder)
    return folder


def open_store(
    path: str | os.PathLike[str],
    *,
    create: bool | None = None,
    encoder: str | None = None,
    clip_seconds: float = CLIP_SECONDS,
    wait: float = 0.0,
) -> LibraryStore:
    """Open the library in a folder for changing it, be it one or in shards; the rest is as in ``LibraryStore.open``."""
    folder = bring_folder(path)
    if is_sharded(folder):
        from momentseek.library.shards.store import open_sharded_store

        return open_sharded_store(folder, encoder=encoder, wait=wait)
    return LibraryStore.open(folder, create=create, encoder=encoder, clip_seconds=clip_seconds, wait=wait)
