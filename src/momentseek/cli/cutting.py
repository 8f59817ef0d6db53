"""``momentseek search --cut``: each hit cut into a file of its own, whose name sorts by rank and says its source."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from momentseek.cli import options
from momentseek.errors import MomentseekError
from momentseek.tables import count

if TYPE_CHECKING:
    from momentseek.api import Library
    from momentseek.search import Hit, Results

MAX_STEM_CHARACTERS = 60
"""Characters of a video's name in the name of its clip."""
COPIED_SUFFIXES = frozenset({".mp4", ".mov", ".mkv", ".webm", ".m4v", ".ts", ".avi"})
"""Kinds of file that can be cut without encoding anew, as the same kind."""


def check_clip_folder(cut: str | None) -> Path | None:
    """The folder for clips, refused if it can be none; None if no clips are wanted."""
    if cut is None:
        return None
    folder = Path(cut)
    if folder.exists() and not folder.is_dir():
        raise MomentseekError(f"{folder}: is a file; give a folder for the clips")
    if not folder.absolute().parent.is_dir():
        raise MomentseekError(f"{folder}: there is no folder {folder.parent}; make it first")
    return folder


def cut_hits(library: Library, results: Results, folder: Path, *, exact: bool, pad: float, force: bool) -> None:
    """Cut each hit into a file of the folder; one that cannot be cut does not keep the others from it."""
    targets = [folder / clip_name(hit, exact=exact) for hit in results]
    taken = [path for path in targets if path.exists()]
    if taken and not force:
        raise MomentseekError(f"{taken[0]}: is there already; choose another folder, or overwrite it (--force)")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as e:
        raise MomentseekError(f"{folder}: cannot be made ({e.strerror}); choose another folder") from None
    failed = 0
    for at, (hit, path) in enumerate(zip(results, targets, strict=True), 1):
        try:
            clip = library.cut(hit, path, exact=exact, pad=pad)
            options.say(f"cut {at}/{len(results)}: {path} ({clip.duration:.1f} s)")
        except MomentseekError as e:
            failed += 1
            options.say(f"cut {at}/{len(results)}: {e}")
    if failed:
        raise MomentseekError(f"{count(failed, 'clip')} of {len(results)} could not be cut; the reasons are above")


def clip_name(hit: Hit, *, exact: bool = True) -> str:
    """The file name of a clip: rank, video, start and end; a fast cut keeps the kind of file it copies from.

    >>> from momentseek.search import Hit
    >>> clip_name(Hit(1, 7, Path("k.mp4"), "home/My kitchen.mp4", 12.0, 78.5, 0.03, "strong", 13, 99))
    '01-My-kitchen-00m12.0s-01m18.5s.mp4'
    """
    suffix = PurePosixPath(hit.path.name).suffix.lower()
    kind = ".mp4" if exact else suffix if suffix in COPIED_SUFFIXES else ".mkv"
    stem = re.sub(r"[^\w.]+", "-", PurePosixPath(hit.name).stem).strip("-.")[:MAX_STEM_CHARACTERS] or "clip"
    return f"{hit.rank:02d}-{stem}-{_clip_time(hit.start)}-{_clip_time(hit.end)}{kind}"


def _clip_time(seconds: float) -> str:
    tenths = round(seconds * 10)
    return f"{tenths // 600:02d}m{tenths % 600 // 10:02d}.{tenths % 10}s"
