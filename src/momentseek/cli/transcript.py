"""``momentseek transcript``: what is said in a video, as subtitles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library.ingest.transcribing import check_transcript, edits_between
from momentseek.library.location import library_folder
from momentseek.library.tracks.transcripts import transcript
from momentseek.media.subtitles.read import parse_subtitles, read_subtitles
from momentseek.media.subtitles.srt import srt_text
from momentseek.media.subtitles.vtt import vtt_text

if TYPE_CHECKING:
    from momentseek.library.store import LibraryStore
    from momentseek.library.video import Video


FORMATS = ("srt", "vtt", "text", "json")


@click.command()
@click.argument("video")
@options.library
@click.option("--format", "form", type=click.Choice(FORMATS), default="srt", show_default=True, help="How to write it.")
@click.option("--out", type=click.Path(), metavar="FILE", help="Write a file instead of standard output.")
@click.option("--edit", is_flag=True, help="Correct what was heard in your editor ($VISUAL or $EDITOR).")
@click.option(
    "--import", "given", type=click.Path(), metavar="FILE", help="Correct what was heard by an SRT or VTT file."
)
@options.wait
def command(
    video: str, library: str | None, form: str, out: str | None, edit: bool, given: str | None, wait: float
) -> None:
    """Write what is said in a video: its subtitles, or what a recogniser heard; or correct the latter.

    JSON also has the time of each word that was heard, and says who made the cues.
    A correction keeps the times of its cue, is marked as one, and stays when the video is heard
    anew. A cue that is deleted says that nothing is said there.

    \b
    Correct what was heard in your editor:
      momentseek transcript talk.mp4 --edit
    Or in a file of subtitles:
      momentseek transcript talk.mp4 --out talk.srt
      momentseek transcript talk.mp4 --import talk.srt
    """

    if (edit or given is not None) and (out is not None or (edit and given is not None)):
        raise MomentseekError("choose one of --edit, --import and --out")
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        found = opened.matching([video])
        if len(found) != 1:
            raise MomentseekError(f"{video!r} is {len(found):,} videos of the library; name one (momentseek list)")
        if edit or given is not None:
            _correct(opened, found[0], given)
            return
        text = _transcript_text(opened, found[0].id, form)
    options.write_text(text, out)


def _correct(library: LibraryStore, video: Video, given: str | None) -> None:
    """Correct a transcript by a file, or by what comes back from the editor."""

    check_transcript(library.catalog.of(video.id), video)
    cues = library.catalog.cues(video.id)
    if given is not None:
        wanted = read_subtitles(given)
    else:
        text = click.edit(srt_text(cues), extension=".srt")
        wanted = cues if text is None else parse_subtitles(text.encode(), "edited.srt", "the edited text")
    edits = edits_between(cues, wanted)
    if edits:
        library.edit_cues(video.id, edits)
    options.say(f"{count(len(edits), 'cue')} corrected")


def _transcript_text(library: Any, video: int, form: str) -> str:

    cues = library.catalog.cues(video)
    if form == "json":
        return _as_json(library, video, cues)
    if form == "text":
        return "".join(f"{cue.text}\n" for cue in cues)
    return srt_text(cues) if form == "srt" else vtt_text(cues)


def _as_json(library: Any, video: int, cues: Any) -> str:
    import orjson

    heard = transcript(library.catalog.of(video), video)
    spoken = heard.cues if heard is not None else ()
    rows: list[dict[str, Any]] = [
        {"start": cue.start, "end": cue.end, "text": cue.text, "language": cue.language} for cue in cues
    ]
    if len(spoken) == len(rows):
        for at, (row, cue) in enumerate(zip(rows, spoken, strict=True)):
            row["edited"] = heard is not None and at in heard.edited
            row["words"] = [{"start": word.start, "end": word.end, "text": word.text.strip()} for word in cue.words]
    whole = {"heard_by": heard.transcriber if heard is not None else None, "cues": rows}
    return orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode() + "\n"
