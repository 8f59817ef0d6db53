"""Copies on this machine of the shards of a library in object storage."""

from __future__ import annotations

from pathlib import Path

from momentseek.library.origin import LibraryOrigin, register_origins


def _open_origin(folder: Path) -> LibraryOrigin | None:
    from momentseek.cluster.replicas.publishing import open_replica  # loaded only where a folder is a copy

    return open_replica(folder)


register_origins(_open_origin)
