"""Where the replica of a library in object storage, and copies of its videos, lie on this machine."""

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
    """What a replica of a shard is a replica of."""

    address: str
    replica: str
    """A name that no other replica has."""


def shard_place(shard: Path) -> str:
    """What names a shard on every machine: its address, or its folder if it is no replica."""
    above = address_of(shard.parent)
    return str(shard) if above is None else join_address(above, shard.name)


def shard_folder(place: str) -> Path:
    """The folder of a shard on this machine, given what ``shard_place`` says."""
    if not is_remote(place):
        return Path(place)
    above, name = parent_address(place)
    return copy_folder(above) / name


def make_replica_folder(folder: Path) -> None:
    """Make the folder of a replica and those above it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        why = f"cannot be made ({e.strerror}); name another place ({CACHE_VARIABLE})"
        raise MomentseekError(f"{folder}: {why}") from None


def read_origin(folder: Path) -> Origin | None:
    """What the library in a folder is a replica of; None if it is an ordinary one."""
    try:
        found = json.loads((folder / ORIGIN_FILE).read_bytes())
        return Origin(str(found["address"]), str(found["replica"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def make_origin(folder: Path, address: str) -> Origin:
    """Note in a folder that it is the replica of the shard at an address; what it says already, if it does."""
    there = read_origin(folder)
    if there is not None and there.address == address:
        return there
    origin = Origin(address, uuid.uuid4().hex)
    make_replica_folder(folder)
    write_bytes(folder / ORIGIN_FILE, json.dumps({"address": address, "replica": origin.replica}).encode())
    return origin


SOURCES_END = "-sources"
"""How the name of a folder with copies ends, after that of the library's replica."""


def source_address(path: Path) -> tuple[str, str] | None:
    """The library's address and the video's, if a path is that of a copy next to a replica on any machine; else None.

    Copies are of what lies in the same kind of storage as the library does.

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
"""The largest file that is fetched for a picture of it alone."""


def source_file(video: Video, most_bytes: int | None = None) -> PinnedFile:
    """The file of a video to read from; one in object storage is fetched if this machine has no copy of it.

    One of more than ``most_bytes`` is not fetched: MediaError then says where it is.
    """
    found = source_address(video.path)
    if found is None:
        return video.file
    library, address = found
    mirror = Mirror(sources_folder(copy_folder(library)))
    here = mirror.folder / address.partition("://")[2]
    if not os.path.lexists(here):
        if most_bytes is not None and video.size > most_bytes:
            raise MediaError(
                f"{address}: is not on this machine ({video.size / 1e6:,.0f} MB); play it once to fetch it"
            )
        try:
            for listed in list_files(address, frozenset()):
                mirror.fetch(address, listed)
        except MomentseekError as e:
            raise MediaError(str(e)) from None
    return PinnedFile(here, video.size, video.mtime_ns)
