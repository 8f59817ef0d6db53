"""``momentseek list``: list the library's videos."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.core.reports import text_table
from momentseek.library.file_stamp import path_text, printable
from momentseek.library.location import library_folder
from momentseek.library.paths import clock_text

if TYPE_CHECKING:
    from momentseek.library.video import Video


CHANGED_NOTE = "the file has changed since it was added, and cannot be read now"


@click.command()
@click.argument("pattern", metavar="[GLOB]", required=False)
@options.library
@click.option("--long", "-L", "long", is_flag=True, help="Also show paths, and what was odd about a file.")
@options.as_json
def command(pattern: str | None, library: str | None, long: bool, as_json: bool) -> None:
    """List the library's videos, or those whose name matches GLOB (upper and lower case are the same).

    \b
    Holiday films:
      momentseek list '*holiday*'
    """

    with open_store(library_folder(library), create=False) as opened:
        videos = opened.catalog.videos(opened.catalog.ids(names=[pattern]) if pattern else None)
    if as_json:
        options.echo_json([_values(video) for video in videos])
    elif videos:
        click.echo(_table(videos, long))
    else:
        add = options.command_line(["add", "FOLDER"], library)
        options.say("no video" + (f" matches {pattern!r}" if pattern else f"; add some: {add}"))


def _values(video: Video) -> dict[str, Any]:

    values = asdict(video)
    return {k: path_text(v) if k == "path" else str(v) if isinstance(v, Fraction) else v for k, v in values.items()}


def _table(videos: list[Video], long: bool) -> str:

    header = ["name", "length", "size", "clips", "cues", "shots"]
    rows = [
        [
            printable(video.name),
            clock_text(video.duration),
            f"{video.width}x{video.height}",
            f"{video.clips:,}",
            f"{video.cues:,}",
            f"{len(video.shots) + 1:,}",
        ]
        for video in videos
    ]
    if not long:
        return text_table(header, rows)
    extra = [
        [printable(v.path), printable("; ".join([*([CHANGED_NOTE] if v.changed else []), *v.notes]))] for v in videos
    ]
    whole = [row + more for row, more in zip(rows, extra, strict=True)]
    return text_table([*header, "path", "notes"], whole, align="lrrrrrl")
