"""``momentseek status``: show what the library holds, and what failed."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.core.reports import count
from momentseek.library.file_stamp import printable
from momentseek.library.location import library_folder, place_text
from momentseek.library.paths import clock_text

if TYPE_CHECKING:
    from momentseek.library.status import Status
    from momentseek.library.video import Failure


@click.command()
@options.library
@click.option("--failed", is_flag=True, help="List the files that could not be added, and why.")
@options.as_json
def command(library: str | None, failed: bool, as_json: bool) -> None:
    """Show what the library holds, and what failed.

    \b
    Which files could not be added, and why:
      momentseek status --failed
    """

    with open_store(library_folder(library), create=False) as opened:
        if failed:
            _failures(opened.failures(), library, as_json)
            return
        found = opened.status()
    if as_json:
        options.echo_json({**asdict(found), "path": place_text(found.path)})
    else:
        click.echo(text(found, library))


def _heard_lines(found: Status, command: str) -> list[str]:

    lines = []
    if found.heard or found.unhearable:
        failed = f", {found.unhearable:,} could not be heard" if found.unhearable else ""
        lines.append(
            f"heard     {count(found.heard, 'video')} without subtitles ({clock_text(found.heard_seconds)}){failed}"
        )
    if found.unheard:
        lines.append(f"unheard   {count(found.unheard, 'video')} with sound and without subtitles ({command})")
    return lines


def _read_lines(found: Status, command: str) -> list[str]:

    if not (found.read or found.unreadable):
        return []
    failed = f", {found.unreadable:,} could not be read" if found.unreadable else ""
    rest = f", {found.unread:,} not yet ({command})" if found.unread else ""
    read = f"{count(found.read, 'video')} ({clock_text(found.read_seconds)}), {count(found.lines, 'line')}"
    return [f"read      {read}{rest}{failed}"]


def _described_lines(found: Status) -> list[str]:

    if not (found.described or found.captions or found.undescribable):
        return []
    failed = f", {found.undescribable:,} could not be described" if found.undescribable else ""
    rest = f", {found.undescribed:,} not yet (momentseek describe --model …)" if found.undescribed else ""
    told = (
        f"{count(found.described, 'video')} ({clock_text(found.described_seconds)}), {count(found.captions, 'scene')}"
    )
    return [f"described {told}, by a model{rest}{failed}"]


def text(found: Status, library: str | None = None) -> str:
    """The status as text, with the commands to run next on the library that was named."""

    def run(*words: str) -> str:
        return options.command_line(words, library)

    lines = [
        f"library   {printable(place_text(found.path))}",
        f"videos    {found.videos:,} ({clock_text(found.seconds)})",
        f"clips     {found.clips:,} of {found.clip_seconds:g} s",
        f"cues      {found.cues:,}",
        *(f"{encoder.stream:<9} {encoder.name} ({encoder.dim} columns)" for encoder in found.encoders),
        *_heard_lines(found, run("transcribe")),
        *_read_lines(found, run("read")),
        *_described_lines(found),
        f"size      {options.size_text(found.size)}, {count(found.segments, 'segment')}",
    ]
    if found.failures:
        lines.append(f"failed    {count(found.failures, 'file')} ({run('status', '--failed')})")
    if found.changed:
        lines.append(
            f"changed   {count(found.changed, 'video')} since added, and cannot be read now; "
            "searches find the old moments"
        )
    if found.missing:
        lines.append(f"missing   {count(found.missing, 'video')} whose file is gone ({run('remove', '--missing')})")
    if found.noted:
        lines.append(f"partly    {count(found.noted, 'video')} used only in part; why: {run('list', '--long')}")
    if found.gone:
        lines.append(f"removed   {count(found.gone, 'video')} whose vectors take space ({run('compact')})")
    if found.unfinished:
        lines.append(f"adding    now, or interrupted ({run('add')} continues)")
    if found.reencoding:
        lines.append(f"encoding  again by {found.reencoding} now, or interrupted ({run('reencode')} continues)")
    return "\n".join(lines)


def _failures(failures: list[Failure], library: str | None, as_json: bool) -> None:

    if as_json:
        options.echo_json([asdict(failure) for failure in failures])
        return
    for failure in failures:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(failure.at))
        tries = f", {failure.tries} times" if failure.tries > 1 else ""
        click.echo(f"{printable(failure.path)}: {failure.reason} ({when}{tries})")
    retry = options.command_line(["retry"], library)
    options.say(f"{count(len(failures), 'file')} failed" + (f"; try again: {retry}" if failures else ""))
