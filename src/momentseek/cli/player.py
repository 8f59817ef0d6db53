"""Opening a video at a moment, with a player that can start there, or with what the system opens videos with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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
