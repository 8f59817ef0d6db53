"""``momentseek transcript``: what is said in a video, as subtitles."""

from __future__ import annotations

from typing import Any

import click

from momentseek.cli import options

FORMATS = ("srt", "vtt", "text", "json")


@click.command()
@click.argument("video")
@options.library
@click.option("--format", "form", type=click.Choice(FORMATS), default="srt", show_default=True, help="How to write it.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write a file instead of standard output.")
def command(video: str, library: str | None, form: str, out: str | None) -> None:
    """Write what is said in a video: its subtitles, or what a recogniser heard.

    JSON also has the time of each word that was heard, and says who made the cues.

    \b
    Correct what was heard: write it beside the video, edit it, and add the video again:
      momentseek transcript talk.mp4 --out talk.srt
      momentseek add talk.mp4
    """
    from momentseek.errors import MomentseekError
    from momentseek.library import LibraryStore, library_folder

    with LibraryStore.open(library_folder(library), create=False) as opened:
        found = opened.matching([video])
        if len(found) != 1:
            raise MomentseekError(f"{video!r} is {len(found):,} videos of the library; name one (momentseek list)")
        text = _transcript_text(opened, found[0].id, form)
    options.write_text(text, out)


def _transcript_text(library: Any, video: int, form: str) -> str:
    from momentseek.media.subtitles.srt import srt_text
    from momentseek.media.subtitles.vtt import vtt_text

    cues = library.catalog.cues(video)
    if form == "json":
        return _as_json(library, video, cues)
    if form == "text":
        return "".join(f"{cue.text}\n" for cue in cues)
    return srt_text(cues) if form == "srt" else vtt_text(cues)


def _as_json(library: Any, video: int, cues: Any) -> str:
    import orjson

    from momentseek.library.transcripts import transcript

    heard = transcript(library.catalog, video)
    spoken = heard.cues if heard is not None else ()
    rows: list[dict[str, Any]] = [
        {"start": cue.start, "end": cue.end, "text": cue.text, "language": cue.language} for cue in cues
    ]
    if len(spoken) == len(rows):
        for row, cue in zip(rows, spoken, strict=True):
            row["words"] = [{"start": word.start, "end": word.end, "text": word.text.strip()} for word in cue.words]
    whole = {"heard_by": heard.transcriber if heard is not None else None, "cues": rows}
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode() + "\n"
