"""Videos that nodes of a cluster fetched from object storage to add them, fetched again where one wants to see them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from momentseek.errors import MediaError, MomentseekError
from momentseek.library.location import sources_folder
from momentseek.library.replicas.place import replica_folder
from momentseek.library.video import Video
from momentseek.plain_file import PlainFile
from momentseek.storage.mirror import Mirror, list_files

SOURCES_END = "-sources"
"""How the name of a folder with copies ends, after that of the library's replica."""


def source_address(path: Path) -> tuple[str, str] | None:
    """The library's address and the video's, if a path is that of a copy beside a replica on any machine; else None.

    Copies are of what lies in the same kind of storage as the library does.

    >>> source_address(Path("/cache/s3%3A%2F%2Fbucket%2Flib-sources/bucket/films/a.mp4"))
    ('s3://bucket/lib', 's3://bucket/films/a.mp4')
    >>> source_address(Path("/films/a.mp4"))
    """
    for at, part in enumerate(path.parts):
        if part.endswith(SOURCES_END) and "%3A%2F%2F" in part and at + 1 < len(path.parts):
            library = unquote(part.removesuffix(SOURCES_END))
            return library, f"{library.partition('://')[0]}://{'/'.join(path.parts[at + 1 :])}"
    return None


def bring_source(video: Video, most_bytes: int | None = None) -> PlainFile:
    """The file of a video, fetched from object storage if this machine has no copy of it.

    One of more than ``most_bytes`` is not fetched; MediaError says where it lies.
    """
    found = source_address(video.path)
    if found is None:
        return video.file
    library, address = found
    mirror = Mirror(sources_folder(replica_folder(library)))
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
    return PlainFile(here, video.size, video.mtime_ns)
