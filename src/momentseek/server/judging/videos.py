"""Which videos of the store are in the library now, and what a video is called in the files we write."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping

from momentseek.library.catalog import Catalog
from momentseek.library.video import Video


def present(catalog: Catalog, hashes: Iterable[str]) -> dict[str, int]:
    """Hash → id of a video with that content, for those that are in the library; of copies the first."""
    rows = catalog.rows(
        "SELECT hash, min(id) FROM videos WHERE hash IN (SELECT value FROM json_each(?)) GROUP BY hash",
        (json.dumps(sorted(set(hashes))),),
    )
    return dict(rows)


def playable(catalog: Catalog, hashes: Iterable[str]) -> dict[str, int]:
    """As ``present``, but only where the file can be read now; of copies the first such."""
    rows = catalog.rows(
        "SELECT hash, id, path FROM videos WHERE hash IN (SELECT value FROM json_each(?)) ORDER BY id DESC",
        (json.dumps(sorted(set(hashes))),),
    )
    return {hash: id for hash, id, path in rows if os.path.isfile(os.fsdecode(path))}


def known(catalog: Catalog, ids: Iterable[int]) -> dict[int, Video]:
    """Id → video, for those that are still there."""
    return {video.id: video for video in catalog.videos(set(ids))}


def label_of(name: str, hash: str, taken: Mapping[str, str]) -> str:
    """A video's label: its name, unless another content has that; ``taken`` is hash → label.

    >>> label_of("a.mp4", "1234567890ab", {}), label_of("a.mp4", "1234567890ab", {"ffff": "a.mp4"})
    ('a.mp4', 'a.mp4 (12345678)')
    >>> label_of("new.mp4", "ffff", {"ffff": "a.mp4"})
    'a.mp4'
    """
    if hash in taken:
        return taken[hash]
    used = set(taken.values())
    choices = (name, *(f"{name} ({hash[:size]})" for size in range(8, len(hash))), f"{name} ({hash})")
    return next(choice for choice in choices if choice not in used)
