"""Which videos somebody means by a path, a folder or a pattern."""

from __future__ import annotations

import os
from collections.abc import Sequence

from momentseek.errors import MomentseekError
from momentseek.library.names import matcher
from momentseek.library.stamp import shown
from momentseek.library.video import Video


def select(videos: Sequence[Video], patterns: Sequence[str], missing: bool = False) -> list[Video]:
    """The videos that any pattern means: a file's path, a folder's path, a video's name or a glob for names.

    A path means its own file and no other, also where it would do as a glob (``names.matcher``).
    """
    by_path = {os.fspath(video.path): video for video in videos}
    chosen: dict[int, Video] = {}
    for pattern in patterns:
        places = {os.path.abspath(pattern), os.path.realpath(pattern)}
        found = [by_path[place] for place in places if place in by_path] or _meant(videos, pattern, places)
        if not found:
            raise MomentseekError(f"{shown(pattern)}: is no video of this library; list them with: momentseek list")
        chosen |= {video.id: video for video in found}
    if missing:
        chosen |= {video.id: video for video in videos if not os.path.lexists(video.path)}
    return [video for video in videos if video.id in chosen]


def _meant(videos: Sequence[Video], pattern: str, places: set[str]) -> list[Video]:
    folders = tuple(os.path.join(place, "") for place in places)
    matches = matcher([pattern])
    return [video for video in videos if os.fspath(video.path).startswith(folders) or matches(video.name)]
