"""``momentseek remove``: take videos out of the library."""

from __future__ import annotations

import sys

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library.file_stamp import path_text, printable
from momentseek.library.location import library_folder


@click.command()
@click.argument("patterns", metavar="[PATH|GLOB]...", nargs=-1)
@options.library
@click.option("--missing", is_flag=True, help="Remove the videos whose file is missing.")
@click.option("--dry-run", is_flag=True, help="Only show which videos would be removed.")
@click.option("--yes", "-y", is_flag=True, help="Remove without asking.")
@options.wait
@options.as_json
def command(
    patterns: tuple[str, ...], library: str | None, missing: bool, dry_run: bool, yes: bool, wait: float, as_json: bool
) -> None:
    """Take videos out of the library; the files stay where they are.

    A video is named by its path, by a folder it lies in, or by its name, which may be a pattern.

    \b
    Remove all drafts, after a look at which videos they are:
      momentseek remove 'draft*' --dry-run
      momentseek remove 'draft*' --yes
    """

    if not patterns and not missing:
        raise MomentseekError("no videos are named; give a path, a folder, a pattern for names, or --missing")
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        videos = opened.matching(patterns, missing=missing)
        if not as_json:
            for video in videos:
                click.echo(f"{printable(video.name)}  {printable(video.path)}")
        if videos and not dry_run:
            if not yes:
                if not sys.stdin.isatty():
                    raise MomentseekError("there is no terminal to ask on; use --yes to remove them, or --dry-run")
                click.confirm(f"take {count(len(videos), 'video')} out of the library?", abort=True, err=True)
            videos = opened.remove([video.path for video in videos])
    if as_json:
        options.echo_json({"removed": [] if dry_run else [path_text(v.path) for v in videos], "matched": len(videos)})
    compact = options.command_line(["compact"], library)
    done = "would be removed" if dry_run else f"removed; `{compact}` frees their space"
    options.say(f"{count(len(videos), 'video')} {done}" if videos else "no video to remove")
