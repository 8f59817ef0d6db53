"""Which judged videos are in the library now, and what a video is called in exported files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from momentseek.library.catalog import Catalog
from momentseek.library.video import Video


def present_ids(catalog: Catalog, hashes: Iterable[str]) -> dict[str, int]:
    """Hash → id of a video with that content, for those in the library; of several copies the oldest."""
    return {hash: id for hash, id, _ in reversed(catalog.find_contents(hashes))}


def playable_ids(catalog: Catalog, hashes: Iterable[str]) -> dict[str, int]:
    """Hash → id of a video with that content whose file can be read now; of several such copies the oldest."""
    return {hash: id for hash, id, path in reversed(catalog.find_contents(hashes)) if path.is_file()}


def videos_by_id(catalog: Catalog, ids: Iterable[int]) -> dict[int, Video]:
    """Id → video, for those that are still in the library."""
    return {video.id: video for video in catalog.videos(set(ids))}


def video_label(name: str, hash: str, taken: Mapping[str, str]) -> str:
    """What exported files call a video: its name, or, if another video has that, the name with part of the hash.

    ``taken`` maps the hashes of other videos to their labels.

    >>> video_label("a.mp4", "1234567890ab", {}), video_label("a.mp4", "1234567890ab", {"ffff": "a.mp4"})
    ('a.mp4', 'a.mp4 (12345678)')
    >>> video_label("new.mp4", "ffff", {"ffff": "a.mp4"})
    'a.mp4'
    """
    if hash in taken:
        return taken[hash]
    used = set(taken.values())
    choices = (name, *(f"{name} ({hash[:size]})" for size in range(8, len(hash))), f"{name} ({hash})")
    return next(choice for choice in choices if choice not in used)
