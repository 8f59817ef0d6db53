"""Which videos somebody means by a path, a folder or a pattern."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase

from momentseek.errors import MomentseekError
from momentseek.library.stamp import shown
from momentseek.library.video import Video


def select(videos: Sequence[Video], patterns: Sequence[str], missing: bool = False) -> list[Video]:
    """The videos that any pattern means: a file's path, a folder's path, a video's name or a glob for names.

    A glob is tried on the whole name and on its last part, with regard to case.
    """
    chosen: dict[int, Video] = {}
    for pattern in patterns:
        found = [video for video in videos if _means(pattern, video)]
        if not found:
            raise MomentseekError(f"{shown(pattern)}: is no video of this library; list them with: momentseek list")
        chosen |= {video.id: video for video in found}
    if missing:
        chosen |= {video.id: video for video in videos if not os.path.lexists(video.path)}
    return [video for video in videos if video.id in chosen]


def _means(pattern: str, video: Video) -> bool:
    path = os.fspath(video.path)
    for place in (os.path.abspath(pattern), os.path.realpath(pattern)):
        if path == place or path.startswith(os.path.join(place, "")):
            return True
    last = video.name.rsplit("/", 1)[-1]
    return pattern == video.name or fnmatchcase(video.name, pattern) or fnmatchcase(last, pattern)
