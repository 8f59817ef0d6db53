"""File names of cut moments: they sort by rank and say where they come from."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from momentseek.search.hit import Hit

LONGEST = 60
COPIED = frozenset({".mp4", ".mov", ".mkv", ".webm", ".m4v", ".ts", ".avi"})
"""Kinds of file that can be cut without encoding anew, as the same kind."""


def clip_name(hit: Hit, *, exact: bool = True) -> str:
    """Rank, video, start and end; a fast cut keeps the kind of file it copies from.

    >>> from pathlib import Path
    >>> clip_name(Hit(1, 7, Path("k.mp4"), "home/My kitchen.mp4", 12.0, 78.5, 0.03, "strong", 13, 99))
    '01-My-kitchen-00m12.0s-01m18.5s.mp4'
    """
    suffix = PurePosixPath(hit.path.name).suffix.lower()
    kind = ".mp4" if exact else suffix if suffix in COPIED else ".mkv"
    stem = re.sub(r"[^\w.]+", "-", PurePosixPath(hit.name).stem).strip("-.")[:LONGEST] or "clip"
    return f"{hit.rank:02d}-{stem}-{_time(hit.start)}-{_time(hit.end)}{kind}"


def _time(seconds: float) -> str:
    tenths = round(seconds * 10)
    return f"{tenths // 600:02d}m{tenths % 600 // 10:02d}.{tenths % 10}s"
