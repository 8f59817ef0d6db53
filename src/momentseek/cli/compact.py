"""``momentseek compact``: free the space of removed videos."""

from __future__ import annotations

from dataclasses import asdict

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.core.reports import count
from momentseek.library.location import library_folder


@click.command()
@options.library
@options.wait
@options.as_json
def command(library: str | None, wait: float, as_json: bool) -> None:
    """Rewrite the library without what was removed or replaced.

    Searches work meanwhile. It can be stopped at any time; nothing is lost.

    \b
    After `momentseek remove`:
      momentseek compact
    """

    with open_store(library_folder(library), create=False, wait=wait) as opened:
        done = opened.compact()
    if as_json:
        options.echo_json(asdict(done))
    options.say(
        f"{count(done.videos, 'removed video')} dropped, {count(done.segments, 'segment')} rewritten; "
        f"{options.size_text(done.before)} before, {options.size_text(done.after)} now"
    )
