"""What ``momentseek search`` does with its hits: cut each into a file, open the best in a player."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count

if TYPE_CHECKING:
    from momentseek.api.library import Library
    from momentseek.search.hit import Hit, Results


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

    >>> from momentseek.search.hit import Hit
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


FindProgram = Callable[[str], str | None]
PLAYERS = {
    "mpv": "--start={start:.3f}",
    "vlc": "--start-time={start:.3f}",
    "iina": "--mpv-start={start:.3f}",
    "celluloid": "--mpv-start={start:.3f}",
}
"""Players and the option with which they start at a time."""
SYSTEM_OPENERS = {"darwin": "open", "win32": "explorer"}
"""What opens a file by its type; elsewhere it is ``xdg-open``."""

FAILURE_SECONDS = 1.5
"""Time within which what cannot open a video (no display, no program for it) says so by its exit code."""


def player_command(
    path: Path, start: float, find: FindProgram = shutil.which, platform: str = sys.platform
) -> tuple[list[str], bool]:
    """The command that opens a video, and whether it starts at the moment.

    >>> player_command(Path("/films/a.mp4"), 12.5, find=lambda name: name if name == "mpv" else None)
    (['mpv', '--start=12.500', '/films/a.mp4'], True)
    >>> player_command(Path("/films/a.mp4"), 12.5, find=lambda name: None, platform="linux")
    (['xdg-open', '/films/a.mp4'], False)
    """
    for name, option in PLAYERS.items():
        if found := find(name):
            return [found, option.format(start=start), str(path)], True
    return [SYSTEM_OPENERS.get(platform, "xdg-open"), str(path)], False


def launch_player(arguments: list[str], patience: float = FAILURE_SECONDS) -> None:
    """Start a player and leave it running; ``OSError`` if there is none, or if it gives up at once."""
    quiet = subprocess.DEVNULL
    new: dict[str, bool] = {"start_new_session": True} if os.name == "posix" else {}
    started = subprocess.Popen(arguments, stdin=quiet, stdout=quiet, stderr=quiet, **new)  # type: ignore[call-overload]
    if os.name != "posix":  # Explorer's exit code says nothing
        return
    try:
        code = started.wait(patience)
    except subprocess.TimeoutExpired:
        started.returncode = 0  # it runs on without us; Python need not warn of it
        return
    if code:
        raise OSError(f"{arguments[0]} could not open it (exit code {code})")
