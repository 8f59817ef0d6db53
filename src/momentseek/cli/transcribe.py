"""``momentseek transcribe``: hear what is said in videos that came without subtitles."""

from __future__ import annotations

import click

from momentseek.cli import options
from momentseek.cli.ingesting import ingest_more
from momentseek.core.reports import count
from momentseek.library.ingest.transcribing import TranscriptionPass
from momentseek.library.paths import clock_text


@click.command()
@click.argument("videos", nargs=-1, metavar="[VIDEO]...")
@options.library
@click.option("--transcriber", metavar="SPEC", help="whisper-base (default), whisper-small, …, or a FOLDER.")
@click.option(
    "--again", is_flag=True, help="Also hear what could not be heard before, or was heard by another transcriber."
)
@options.wait
@options.quiet
@options.as_json
def command(
    videos: tuple[str, ...],
    library: str | None,
    transcriber: str | None,
    again: bool,
    wait: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Hear what is said in videos that have sound and no subtitles.

    `add` does the same for what it adds; this is for videos that were added without it. Videos
    with subtitles are left alone. Stop it at any time: the next call continues from there.

    \b
    All of them:
      momentseek transcribe
    Some, with a larger model (momentseek models get whisper-small; or the FOLDER of one of your own):
      momentseek transcribe 'talks/*' --transcriber whisper-small
    Hear anew with it what the packaged model heard; corrections stay:
      momentseek transcribe --again --transcriber whisper-small
    Correct what was heard:
      momentseek transcript talks/one.mp4 --edit
    """

    report = ingest_more(
        lambda opened, tell: opened.transcribe(videos, transcriber=transcriber, again=again, progress=tell),
        "hearing",
        library=library,
        wait=wait,
        quiet=quiet,
        as_json=as_json,
        again=["transcribe", *videos, *([] if transcriber is None else ["--transcriber", transcriber])],
    )
    if not quiet:
        seconds = f" ({clock_text(report.heard_seconds)} in {report.elapsed:,.0f} s)" if report.heard else ""
        failed = sum(TranscriptionPass.UNDONE_IN_VIDEO in noted.text for noted in report.noted)
        unheard = f", {failed:,} could not be heard" if failed else ""
        options.say(f"{count(report.heard, 'video')} heard{seconds}{unheard}")
