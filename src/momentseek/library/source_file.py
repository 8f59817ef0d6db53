"""The file of a video on this machine, wherever it was added from."""

from __future__ import annotations

import os

from momentseek.library.video import Video
from momentseek.plain_file import PlainFile

MAX_PICTURED_BYTES = 256 << 20
"""The largest file that is fetched for a picture of it alone."""


def source_file(video: Video, most_bytes: int | None = None) -> PlainFile:
    """The file of a video to read from; a copy of one in object storage is fetched if this machine has none.

    One of more than ``most_bytes`` is not fetched: MediaError then says where it lies.
    """
    if not is_elsewhere(video.path):
        return video.file
    from momentseek.library.replicas.sources import bring_source

    return bring_source(video, most_bytes)


def is_elsewhere(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether the file at a path is a copy of one in object storage, so that it can be fetched anywhere.

    >>> is_elsewhere("/cache/s3%3A%2F%2Fbucket%2Flib-sources/bucket/a.mp4"), is_elsewhere("/films/a.mp4")
    (True, False)
    """
    return "%3A%2F%2F" in os.fsdecode(path)  # as replicas and what lies beside them are named


def is_missing(path: str | bytes | os.PathLike[str]) -> bool:
    """Whether the file of a video is gone: not on this machine, and no copy of one in object storage."""
    return not os.path.lexists(path) and not is_elsewhere(path)
