"""``momentseek retry``: try again to add the files that failed."""

from __future__ import annotations

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.cli.ingesting import IngestLines, conclude, ingest
from momentseek.library.location import library_folder


@click.command()
@options.library
@click.option("--subtitles", type=click.Path(), metavar="DIR", help="Look for subtitles here too.")
@options.wait
@options.quiet
@options.as_json
def command(library: str | None, subtitles: str | None, wait: float, quiet: bool, as_json: bool) -> None:
    """Try again to add the files that `momentseek status --failed` lists.

    `add` leaves a file that failed alone until it changes; `retry` does not. Files that no longer
    exist are taken off the list.

    \b
    After installing what was missing, or repairing a disk:
      momentseek retry
    """

    display = IngestLines(quiet=quiet, what="retrying")
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        report = ingest(
            lambda tell: opened.retry(progress=tell, subtitles=subtitles),
            display,
            library=library,
            as_json=as_json,
            again=["retry"] if subtitles is None else ["retry", "--subtitles", subtitles],
        )
    conclude(report, library=library, as_json=as_json, quiet=quiet)
