"""Output of ``momentseek search``: show hits, write them to files, cut clips, and open the best in a player."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from momentseek.api.library import Library
from momentseek.cli import options
from momentseek.cli.terminal import draw, draw_picture, supported_images
from momentseek.core.atomic import write_all
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.search.display import card, recognition_text, remarks, table
from momentseek.search.export import clip_name, hits_to_run, render
from momentseek.search.hit import Hit, Results

FILE_KINDS = ("html", "edl", "fcpxml", "srt", "run")
"""Kinds of file that hits are written to."""
TIMELINE_KINDS = ("edl", "fcpxml")
"""Files for video editors, to which the padding is added as handles; an SRT written with them has the same times."""
DEFAULT_COLUMNS = 120
"""Width of the table if stdout is not a terminal."""
FindProgram = Callable[[str], str | None]
PLAYERS = {
    "mpv": "--start={start:.3f}",
    "vlc": "--start-time={start:.3f}",
    "iina": "--mpv-start={start:.3f}",
    "celluloid": "--mpv-start={start:.3f}",
}
"""Players and their option for the start time."""
SYSTEM_OPENERS = {"darwin": "open", "win32": "explorer"}
"""Command that opens a file by its type, per platform; ``xdg-open`` on all others."""

FAILURE_SECONDS = 1.5
"""Time within which a player that cannot open a video (no display, no program for it) exits with an error."""


def show_results(library: Library, results: Results, explain: bool, images: bool | None) -> None:
    """Show hits in the terminal, with pictures if it supports them."""
    terminal = sys.stdout.isatty()
    columns, kind = DEFAULT_COLUMNS, None
    if terminal:
        columns = shutil.get_terminal_size((DEFAULT_COLUMNS, 24)).columns
        kind = supported_images() if images is not False else None
    if images and kind is None:
        options.say("no pictures: this terminal does not report image support (kitty, Ghostty, iTerm2, WezTerm do)")
    if results and kind is not None:
        for hit in results:
            try:
                draw(draw_picture(library.thumbnail(hit), kind) + "\n")
            except MomentseekError as e:  # show the results even if a drive is not connected
                options.say(str(e))
            click.echo(card(hit, results.query, columns=columns, bold=True, explain=explain))
    elif results:
        click.echo(table(results, results.query, columns=columns, bold=terminal, explain=explain))
    if explain and (named := recognition_text(results.understood)):
        click.echo(named)
    remark = remarks(results.hidden, results.note or ("" if results or results.hidden else "nothing found"))
    if remark:
        options.say(remark)


def write_files(library: Library, results: Results, files: dict[str, str | None], pad: float) -> None:
    """Write all requested files, or none of them."""
    wanted = {kind: path for kind, path in files.items() if path}
    if not wanted:
        return
    if not results:
        options.say("no moments, so no file was written")
        return

    content: dict[Any, bytes] = {}
    notes: list[str] = []
    for kind, path in wanted.items():
        if kind == "run":
            from momentseek.measuring.formats import FORMATS  # not needed by other searches

            run = hits_to_run(str(results.query), str(results.query), results)
            content[path] = FORMATS["native-run"].to_bytes((run,), None)
            continue
        timeline = kind in TIMELINE_KINDS or (kind == "srt" and len({hit.path for hit in results}) > 1)
        hits = [_pad_hit(hit, pad) for hit in results] if timeline else results
        written = render(hits, str(results.query), kind, _thumbnails(library) if kind == "html" else None)
        content[path] = written.text.encode("utf-8", errors="replace")
        notes += [f"{path}: {note}" for note in written.notes]
    write_all(content)
    for line in (*notes, *(f"wrote {path}" for path in content)):
        options.say(line)


def _thumbnails(library: Library) -> Any:
    """Return a function that makes the page's thumbnails; it reports and omits those that cannot be made."""

    def thumbnail(hit: Hit) -> bytes | None:
        try:
            return library.thumbnail(hit)
        except MomentseekError as e:
            options.say(str(e))
            return None

    return thumbnail


def _pad_hit(hit: Hit, pad: float) -> Hit:
    return replace(hit, start=max(0.0, hit.start - pad), end=min(hit.duration, hit.end + pad))


def check_clip_folder(cut: str | None) -> Path | None:
    """Return the folder for clips, or None if no clips are wanted; refuse a path that cannot be a folder."""
    if cut is None:
        return None
    folder = Path(cut)
    if folder.exists() and not folder.is_dir():
        raise MomentseekError(f"{folder}: is a file; give a folder for the clips")
    if not folder.absolute().parent.is_dir():
        raise MomentseekError(f"{folder}: there is no folder {folder.parent}; create it first")
    return folder


def cut_hits(library: Library, results: Results, folder: Path, *, exact: bool, pad: float, force: bool) -> None:
    """Cut each hit into a file in the folder; a hit that cannot be cut does not stop the others."""
    targets = [folder / clip_name(hit, exact=exact) for hit in results]
    taken = [path for path in targets if path.exists()]
    if taken and not force:
        raise MomentseekError(f"{taken[0]}: already exists; choose another folder, or overwrite it (--force)")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as e:
        raise MomentseekError(f"{folder}: cannot be created ({e.strerror}); choose another folder") from None
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


def open_first(results: Sequence[Hit]) -> None:
    """Open the best hit in a player, at its start if the player supports that."""
    if not results:
        options.say("no moment to open")
        return

    hit = results[0]
    if not hit.path.is_file():
        raise MomentseekError(f"{hit.path}: does not exist; connect its drive")
    arguments, starts_there = player_command(hit.path, hit.start)
    try:
        launch_player(arguments)
    except FileNotFoundError:
        raise MomentseekError("no player was found; install mpv or VLC") from None
    except OSError as e:
        raise MomentseekError(
            f"nothing was opened: {e.strerror or e}; install mpv or VLC, or open {hit.path} yourself; "
            f"the moment is at {hit.start:.1f} s"
        ) from None
    if starts_there:
        options.say(f"opened at {hit.start:.1f} s")
    else:
        options.say(f"opened from the beginning; the moment is at {hit.start:.1f} s (mpv or VLC would start there)")


def player_command(
    path: Path, start: float, find: FindProgram = shutil.which, platform: str = sys.platform
) -> tuple[list[str], bool]:
    """Return the command that opens a video, and whether it starts at the moment.

    >>> player_command(Path("/films/a.mp4"), 12.5, find=lambda name: name if name == "mpv" else None)
    (['mpv', '--start=12.500', '/films/a.mp4'], True)
    >>> player_command(Path("/films/a.mp4"), 12.5, find=lambda name: None, platform="linux")
    (['xdg-open', '/films/a.mp4'], False)
    """
    for name, option in PLAYERS.items():
        if found := find(name):
            return [found, option.format(start=start), str(path)], True
    return [SYSTEM_OPENERS.get(platform, "xdg-open"), str(path)], False


def launch_player(arguments: list[str], timeout: float = FAILURE_SECONDS) -> None:
    """Start a player and leave it running; raise ``OSError`` if there is none, or if it exits at once."""
    quiet = subprocess.DEVNULL
    new: dict[str, bool] = {"start_new_session": True} if os.name == "posix" else {}
    started = subprocess.Popen(arguments, stdin=quiet, stdout=quiet, stderr=quiet, **new)  # type: ignore[call-overload]
    if os.name != "posix":  # Explorer's exit code says nothing
        return
    try:
        code = started.wait(timeout)
    except subprocess.TimeoutExpired:
        started.returncode = 0  # it keeps running without us; this prevents Python's warning
        return
    if code:
        raise OSError(f"{arguments[0]} could not open it (exit code {code})")
