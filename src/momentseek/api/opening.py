"""Opening a library, be it one folder or in shards."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from momentseek.api.library import Library
from momentseek.library.opening import bring_folder
from momentseek.library.reader import CLIP_SECONDS
from momentseek.library.shards.manifest import is_sharded

if TYPE_CHECKING:
    from momentseek.search.shards.fan_out import FanOut


def open_library(
    path: str | os.PathLike[str],
    *,
    create: bool | None = None,
    encoder: str | None = None,
    clip_seconds: float = CLIP_SECONDS,
    wait: float = 0.0,
    fan_out: FanOut | None = None,
) -> Library:
    """Open the library in a folder or at an address (``s3://bucket/lib``), be it one or in shards (docs/sharding.md);
    the rest is as in ``Library.open``.

    ``fan_out`` is a way to ask the shards elsewhere than in this process.
    """
    folder = bring_folder(path)
    if is_sharded(folder):
        from momentseek.api.sharded import open_sharded

        return open_sharded(folder, encoder=encoder, wait=wait, fan_out=fan_out)
    return Library.open(folder, create=create, encoder=encoder, clip_seconds=clip_seconds, wait=wait)
