"""Local folders for replicas of libraries in object storage, and for copies of their videos."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from momentseek.cluster.storage.mirror import Mirror, list_files
from momentseek.cluster.storage.objects import join_address, parent_address
from momentseek.core.atomic import write_bytes
from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.pinned_file import PinnedFile
from momentseek.library.location import CACHE_VARIABLE, address_of, copy_folder, is_elsewhere, is_remote, sources_folder
from momentseek.library.origin import ORIGIN_FILE
from momentseek.library.video import Video


@dataclass(frozen=True)
class Origin:
    """The shard in object storage that a replica copies."""

    address: str
    replica: str
    """A name that is unique among replicas."""


def shard_place(shard: Path) -> str:
    """The name of a shard on every machine: its address in object storage, or its folder."""
    above = address_of(shard.parent)
    return str(shard) if above is None else join_address(above, shard.name)


def shard_folder(place: str) -> Path:
    """The folder of a shard on this machine, from the result of ``shard_place``."""
    if not is_remote(place):
        return Path(place)
    above, name = parent_address(place)
    return copy_folder(above) / name


def make_replica_folder(folder: Path) -> None:
    """Create the folder of a replica, with its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        why = f"cannot be created ({e.strerror}); name another place ({CACHE_VARIABLE})"
        raise MomentseekError(f"{folder}: {why}") from None


def read_origin(folder: Path) -> Origin | None:
    """The shard that the library in a folder is a replica of; None for an ordinary library."""
    try:
        found = json.loads((folder / ORIGIN_FILE).read_bytes())
        return Origin(str(found["address"]), str(found["replica"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def make_origin(folder: Path, address: str) -> Origin:
    """Record in a folder that it is the replica of the shard at an address; an existing record is returned as it is."""
    there = read_origin(folder)
    if there is not None and there.address == address:
        return there
    origin = Origin(address, uuid.uuid4().hex)
    make_replica_folder(folder)
    write_bytes(folder / ORIGIN_FILE, json.dumps({"address": address, "replica": origin.replica}).encode())
    return origin


SOURCES_END = "-sources"
"""Suffix of a folder with copies of videos; it is added to the name of the library's replica."""


def source_address(path: Path) -> tuple[str, str] | None:
    """The addresses of library and video, if a path is that of a copy next to a replica on any machine; else None.

    Library and video are in the same kind of storage.

    >>> source_address(Path("/cache/s3%3A%2F%2Fbucket%2Flib-sources/bucket/films/a.mp4"))
    ('s3://bucket/lib', 's3://bucket/films/a.mp4')
    >>> source_address(Path("/films/a.mp4"))
    """
    for at, part in enumerate(path.parts):
        if part.endswith(SOURCES_END) and is_elsewhere(part) and at + 1 < len(path.parts):
            library = unquote(part.removesuffix(SOURCES_END))
            return library, f"{library.partition('://')[0]}://{'/'.join(path.parts[at + 1 :])}"
    return None


MAX_PICTURED_BYTES = 256 << 20
"""Files larger than this are not fetched for a thumbnail alone."""


def source_file(video: Video, max_bytes: int | None = None) -> PinnedFile:
    """The local file of a video; a video in object storage is fetched if this machine has no copy of it.

    A video of more than ``max_bytes`` is not fetched; a MediaError then says where it is.
    """
    found = source_address(video.path)
    if found is None:
        return video.file
    library, address = found
    mirror = Mirror(sources_folder(copy_folder(library)))
    here = mirror.folder / address.partition("://")[2]
    if not os.path.lexists(here):
        if max_bytes is not None and video.size > max_bytes:
            raise MediaError(
                f"{address}: is not on this machine ({video.size / 1e6:,.0f} MB); play it once to fetch it"
            )
        try:
            for listed in list_files(address, frozenset()):
                mirror.fetch(address, listed)
        except MomentseekError as e:
            raise MediaError(str(e)) from None
    return PinnedFile(here, video.size, video.mtime_ns)
