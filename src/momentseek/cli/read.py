"""``momentseek read``: read what is written in the pictures of videos."""

from __future__ import annotations

import click

from momentseek.cli import options
from momentseek.cli.ingesting import ingest_more
from momentseek.core.reports import count
from momentseek.library.paths import clock_text


@click.command()
@click.argument("videos", nargs=-1, metavar="[VIDEO]...")
@options.library
@click.option("--reader", metavar="SPEC", help="ppocr-small (default), or ppocr:FOLDER.")
@click.option(
    "--every",
    type=click.FloatRange(0.2, 60),
    default=4.0,
    show_default=True,
    metavar="SECONDS",
    help="Read one frame of so many seconds of a shot.",
)
@click.option("--again", is_flag=True, help="Also those that could not be read; videos that are named, anew.")
@options.wait
@options.quiet
@options.as_json
def command(
    videos: tuple[str, ...],
    library: str | None,
    reader: str | None,
    every: float,
    again: bool,
    wait: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Read what is written in the pictures of videos: titles, slides, signs.

    `add --ocr` does the same for what it adds; this is for videos that were added without it. Stop
    it at any time: the next call continues from there.

    \b
    All of them:
      momentseek read
    Subtitles in the picture change more often; read a film anew, a frame a second:
      momentseek read film.mp4 --again --every 1
    Some, with a model for another script that lies in a folder:
      momentseek read 'talks/*' --reader ppocr:~/models/korean
    Then find it, and see what was read:
      momentseek search 'text:"seven telescopes"'
      momentseek text talks/one.mp4
    """

    report = ingest_more(
        lambda opened, tell: opened.read(videos, reader=reader, every=every, again=again, progress=tell),
        "reading",
        library=library,
        wait=wait,
        quiet=quiet,
        as_json=as_json,
        again=["read", *videos, *([] if reader is None else ["--reader", reader])],
    )
    if not quiet:
        seconds = f" ({clock_text(report.read_seconds)} in {report.elapsed:,.0f} s)" if report.read else ""
        unread = f", {len(report.noted):,} could not be read" if report.noted else ""
        options.say(f"{count(report.read, 'video')} read{seconds}{unread}")
