"""``momentseek text``: what was read in the pictures of a video."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.library.location import library_folder
from momentseek.library.tracks.readings import reading
from momentseek.media.subtitles.cues import Cue
from momentseek.media.subtitles.srt import srt_text
from momentseek.media.subtitles.vtt import vtt_text

if TYPE_CHECKING:
    from momentseek.library.tracks.readings import ScreenReading


FORMATS = ("srt", "vtt", "text", "json")


@click.command()
@click.argument("video")
@options.library
@click.option("--format", "form", type=click.Choice(FORMATS), default="srt", show_default=True, help="How to write it.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write a file instead of standard output.")
def command(video: str, library: str | None, form: str, out: str | None) -> None:
    """Write what a machine read in the pictures of a video, with times.

    JSON also has where each line stands, as shares of the picture, at which time it was read best,
    how sure the reader is, and which reader it was.

    \b
    As subtitles, and with boxes:
      momentseek text talk.mp4
      momentseek text talk.mp4 --format json --out talk-text.json
    """

    with open_store(library_folder(library), create=False) as opened:
        found = opened.matching([video])
        if len(found) != 1:
            raise MomentseekError(f"{video!r} is {len(found):,} videos of the library; name one (momentseek list)")
        read = reading(opened.catalog.of(found[0].id), found[0].id)
    if read is None or not read.whole:
        again = options.command_line(["read", video], library)
        raise MomentseekError(f"{video}: nobody has read what is written in it; run: {again}")
    if read.problem:
        again = options.command_line(["read", video, "--again"], library)
        raise MomentseekError(f"{video}: could not be read ({read.problem}); try again: {again}")
    options.write_text(reading_text(read, form), out)


def reading_text(read: ScreenReading, form: str) -> str:
    """What was read, in one of the formats.

    >>> from momentseek.recognition.ocr.lines import Box, ScreenLine
    >>> from momentseek.library.tracks.readings import ScreenReading
    >>> line = ScreenLine(1.0, 2.5, "Way out", 2.0, Box(0.1, 0.2, 0.3, 0.1), 0.98)
    >>> print(reading_text(ScreenReading(1, "ppocr-small", (line,)), "srt"), end="")
    1
    00:00:01,000 --> 00:00:02,500
    Way out
    """

    if form == "json":
        import orjson

        lines = [
            {"start": o.start, "end": o.end, "text": o.text, "at": o.at, "box": list(o.box), "score": o.score}
            for o in read.lines
        ]
        return orjson.dumps({"read_by": read.reader, "lines": lines}, option=orjson.OPT_INDENT_2).decode() + "\n"
    if form == "text":
        return "".join(f"{line.text}\n" for line in read.lines)
    cues = [Cue(line.start, line.end, line.text) for line in read.lines]
    return srt_text(cues) if form == "srt" else vtt_text(cues)
