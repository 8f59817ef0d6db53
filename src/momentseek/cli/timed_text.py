"""``momentseek transcribe``, ``transcript``, ``ocr``, ``sounds`` and ``people``: timed text made from videos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import orjson

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.cli.groups import report_rename
from momentseek.cli.ingesting import ingest_more, say_done
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library.database import OCR, SOUNDS, TrackKind
from momentseek.library.location import library_folder
from momentseek.library.paths import clock_text
from momentseek.library.store import LibraryStore
from momentseek.library.timed_text import Track, track
from momentseek.library.tracks.speech import TranscriptionPass, check_transcript, edits_between
from momentseek.library.tracks.speech import transcript as find_transcript
from momentseek.library.video import Video
from momentseek.media.subtitles.cues import Cue
from momentseek.media.subtitles.read import parse_subtitles, read_subtitles
from momentseek.media.subtitles.srt import srt_text
from momentseek.media.subtitles.vtt import vtt_text

text_format = click.option(
    "--format",
    "form",
    type=click.Choice(["srt", "vtt", "text", "json"]),
    default="srt",
    show_default=True,
    help="Format to write.",
)
text_file = click.option("--out", type=click.Path(), metavar="FILE", help="Write to FILE instead of standard output.")


@click.command()
@click.argument("videos", nargs=-1, metavar="[VIDEO]...")
@options.library
@click.option(
    "--transcriber", metavar="SPEC", help="Speech recognition model: a name (default: whisper-base) or a folder."
)
@click.option(
    "--again", is_flag=True, help="Also transcribe videos that failed before, or that another model transcribed."
)
@options.wait
@options.quiet
@options.as_json
def transcribe(videos: tuple[str, ...], transcriber: str | None, again: bool, quiet: bool, **given: Any) -> None:
    """Transcribe videos that have sound and no subtitles.

    `add` does this for new videos; run it for videos that were added without it. Videos with
    subtitles are skipped. You can stop at any time: the next run continues from there.

    \b
    All of them:
      momentseek transcribe
    Some, with a larger model (momentseek models get whisper-small) or the folder of your own:
      momentseek transcribe 'talks/*' --transcriber whisper-small
    Replace transcripts of the packaged model by those of a larger one, and keep corrections:
      momentseek transcribe --again --transcriber whisper-small
    Correct a transcript:
      momentseek transcript edit talks/one.mp4
    """
    report = ingest_more(
        lambda opened, tell: opened.transcribe(videos, transcriber=transcriber, again=again, progress=tell),
        "transcribing",
        again=["transcribe", *videos, *([] if transcriber is None else ["--transcriber", transcriber])],
        quiet=quiet,
        **given,
    )
    if not quiet:
        seconds = f" ({clock_text(report.heard_seconds)} in {report.elapsed:,.0f} s)" if report.heard else ""
        failed = sum(TranscriptionPass.undone_in_video in noted.text for noted in report.noted)
        unheard = f", {failed:,} could not be transcribed" if failed else ""
        options.say(f"{count(report.heard, 'video')} transcribed{seconds}{unheard}")


FORMER_FLAGS = {"--edit": "edit VIDEO", "--import": "import VIDEO FILE"}
"""Flags that are commands of their own now."""


class TranscriptGroup(click.Group):
    """A group that accepts its former spelling, ``transcript VIDEO``, for ``transcript show VIDEO``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with ``show`` before a video's name."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            present = next((present for flag, present in FORMER_FLAGS.items() if flag in args), "show VIDEO")
            report_rename(ctx, "transcript VIDEO", f"transcript {present}")
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=TranscriptGroup)
def transcript() -> None:
    """Show, edit or import the transcript of a video: its subtitles, or recognised speech.

    \b
      momentseek transcript show talk.mp4
      momentseek transcript edit talk.mp4
    """


@transcript.command("show", short_help="Show the transcript of a video.")
@click.argument("video")
@options.library
@text_format
@text_file
@click.option("--edit", is_flag=True, hidden=True)
@click.option("--import", "given", type=click.Path(), hidden=True)
@options.wait
def show_transcript(
    video: str, library: str | None, form: str, out: str | None, edit: bool, given: str | None, wait: float
) -> None:
    """Show the transcript of a video: its subtitles, or recognised speech.

    JSON also has the time of each recognised word and the name of the speech model.

    \b
      momentseek transcript show talk.mp4 --format vtt --out talk.vtt
    """
    if (edit or given is not None) and (out is not None or (edit and given is not None)):
        raise MomentseekError("choose one of --edit, --import and --out")
    if edit or given is not None:
        _correct(video, library, given, wait)
        return
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        found = _one_video(opened, video)
        cues = opened.catalog.cues(found.id)
        heard = find_transcript(opened.catalog.of(found.id), found.id)
        text = _transcript_json(opened, found.id, cues) if form == "json" else cues_text(cues, form)
    options.write_text(text, out)
    if not cues:
        options.say(f"{video}: {_why_silent(found, heard is not None, library)}")


def _why_silent(video: Video, heard: bool, library: str | None) -> str:
    """Return the reason why a video has no transcript."""
    if not video.audio:
        return "has no sound, and no subtitles"
    if heard:
        return "no speech was recognised in it"
    again = options.command_line(["transcribe", video.name], library)
    return f"has no subtitles, and has not been transcribed; run: {again}"


@transcript.command("edit", short_help="Correct a transcript in your editor.")
@click.argument("video")
@options.library
@options.wait
def edit_transcript(video: str, library: str | None, wait: float) -> None:
    """Correct the recognised speech of a video in your editor ($VISUAL or $EDITOR).

    A corrected cue keeps its times, is marked as edited, and is kept when the video is transcribed
    again. Deleting a cue means that nothing is said there.

    \b
      momentseek transcript edit talk.mp4
    """
    _correct(video, library, None, wait)


@transcript.command("import", short_help="Correct a transcript with an SRT or VTT file.")
@click.argument("video")
@click.argument("file", type=click.Path())
@options.library
@options.wait
def import_transcript(video: str, file: str, library: str | None, wait: float) -> None:
    """Correct the recognised speech of a video with FILE, an SRT or VTT file, as `edit` does.

    \b
      momentseek transcript show talk.mp4 --out talk.srt
      momentseek transcript import talk.mp4 talk.srt
    """
    _correct(video, library, file, wait)


def _correct(name: str, library: str | None, file: str | None, wait: float) -> None:
    """Correct a transcript with a file, or in the user's editor if ``file`` is None."""
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        video = _one_video(opened, name)
        check_transcript(opened.catalog.of(video.id), video)
        cues = opened.catalog.cues(video.id)
        if file is not None:
            wanted = read_subtitles(file)
        else:
            text = click.edit(srt_text(cues), extension=".srt")
            wanted = cues if text is None else parse_subtitles(text.encode(), "edited.srt", "the edited text")
        edits = edits_between(cues, wanted)
        if edits:
            opened.edit_cues(video.id, edits)
    options.say(f"{count(len(edits), 'cue')} corrected")


def _one_video(library: LibraryStore, name: str) -> Video:
    """Return the video with a name; refuse names of no video or of several."""
    found = library.matching([name])
    if len(found) != 1:
        raise MomentseekError(f"{name!r} is {len(found):,} videos of the library; name one (momentseek list)")
    return found[0]


def cues_text(cues: Sequence[Cue], form: str) -> str:
    """Return cues as SRT, VTT or plain text.

    >>> cues_text([Cue(1.0, 2.5, "Way out")], "text")
    'Way out\\n'
    """
    if form == "text":
        return "".join(f"{cue.text}\n" for cue in cues)
    return srt_text(cues) if form == "srt" else vtt_text(cues)


def _transcript_json(library: LibraryStore, video: int, cues: Sequence[Cue]) -> str:
    heard = find_transcript(library.catalog.of(video), video)
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


@click.group()
def ocr() -> None:
    """Recognise text in video frames (titles, slides, signs) and show it.

    \b
      momentseek ocr run
      momentseek search 'text:"seven telescopes"'
      momentseek ocr show talks/one.mp4
    """


@ocr.command("run", short_help="Recognise text in video frames.")
@click.argument("videos", nargs=-1, metavar="[VIDEO]...")
@options.library
@options.ocr_model
@click.option(
    "--every",
    type=click.FloatRange(0.2, 60),
    default=4.0,
    show_default=True,
    metavar="SECONDS",
    help="Read one frame every SECONDS of a shot.",
)
@click.option("--again", is_flag=True, help="Also read videos that failed before; read named videos again.")
@options.wait
@options.quiet
@options.as_json
def run_ocr(
    videos: tuple[str, ...], ocr_model: str | None, every: float, again: bool, quiet: bool, **given: Any
) -> None:
    """Recognise text in video frames: titles, slides, signs.

    `add --ocr` does this for new videos; run it for videos that were added without it. You can
    stop at any time: the next run continues from there.

    \b
    All of them:
      momentseek ocr run
    Read a film with burnt-in subtitles again, at one frame per second:
      momentseek ocr run film.mp4 --again --every 1
    Some, with a model for another script in a folder:
      momentseek ocr run 'talks/*' --ocr-model ppocr:~/models/korean
    Search the recognised text, then show it:
      momentseek search 'text:"seven telescopes"'
      momentseek ocr show talks/one.mp4
    """
    report = ingest_more(
        lambda opened, tell: opened.ocr(videos, model=ocr_model, every=every, again=again, progress=tell),
        "reading text",
        again=["ocr", "run", *videos, *([] if ocr_model is None else ["--ocr-model", ocr_model])],
        quiet=quiet,
        **given,
    )
    if not quiet:
        say_done(report, f"{count(report.read, 'video')} read", report.read_seconds, "read")


@ocr.command("show", short_help="Show the text recognised in a video.")
@click.argument("video")
@options.library
@text_format
@text_file
def show_ocr(video: str, library: str | None, form: str, out: str | None) -> None:
    """Show the text recognised in a video, with times.

    JSON also has each line's box (as fractions of the frame), the time at which it was read with the highest
    score, this score, and the name of the OCR model.

    \b
    As subtitles, and with boxes:
      momentseek ocr show talk.mp4
      momentseek ocr show talk.mp4 --format json --out talk-text.json
    """
    read = _whole_track(library, video, OCR, "OCR has not been run on it", "could not be read")
    options.write_text(reading_text(read, form), out)


def reading_text(read: Track, form: str) -> str:
    """Return recognised text in one of the formats.

    >>> from momentseek.library.timed_text import Maker
    >>> line = Cue(1.0, 2.5, "Way out", None, 2.0, 0.98, (0.1, 0.2, 0.3, 0.1))
    >>> print(reading_text(Track(1, Maker("ppocr-small", ""), None, True, "", (line,)), "srt"), end="")
    1
    00:00:01,000 --> 00:00:02,500
    Way out
    """
    if form != "json":
        return cues_text([Cue(line.start, line.end, line.text) for line in read.cues], form)
    lines = [
        {"start": o.start, "end": o.end, "text": o.text, "at": o.at, "box": o.box, "score": o.score} for o in read.cues
    ]
    return orjson.dumps({"read_by": read.by.model, "lines": lines}, option=orjson.OPT_INDENT_2).decode() + "\n"


def _whole_track(library: str | None, video: str, kind: TrackKind, undone: str, failed: str) -> Track:
    """Return the complete track of a video; raise an error if there is none."""
    with open_store(library_folder(library), create=False) as opened:
        id = _one_video(opened, video).id
        found = track(opened.catalog.of(id), kind, id)
    if found is None or not found.whole:
        again = options.command_line([kind.name, "run", video], library)
        raise MomentseekError(f"{video}: {undone}; run: {again}")
    if found.problem:
        again = options.command_line([kind.name, "run", video, "--again"], library)
        raise MomentseekError(f"{video}: {failed} ({found.problem}); try again: {again}")
    return found


@click.group()
def sounds() -> None:
    """Detect sounds other than speech (applause, barking, music) and show them.

    \b
      momentseek models get yamnet
      momentseek sounds run
      momentseek search 'a dog barks'
      momentseek sounds show park.mp4
    """


@sounds.command("run", short_help="Detect sounds other than speech.")
@click.argument("videos", nargs=-1, metavar="[VIDEO]...")
@options.library
@click.option("--again", is_flag=True, help="Also process videos that failed before.")
@options.wait
@options.quiet
@options.as_json
def run_sounds(videos: tuple[str, ...], again: bool, quiet: bool, **given: Any) -> None:
    """Detect sounds other than speech: applause, barking, music, a siren.

    `add` does this for new videos once `momentseek models get yamnet` has downloaded the weights;
    run it for videos that were added before. You can stop at any time: the next run continues from
    there.

    \b
    All of them:
      momentseek sounds run
    Search the detected sounds:
      momentseek search applause
    """
    report = ingest_more(
        lambda opened, tell: opened.listen(videos, again=again, progress=tell),
        "detecting sounds",
        again=["sounds", "run", *videos],
        quiet=quiet,
        **given,
    )
    if not quiet:
        found = f"{count(report.sounds, 'sound')} in {count(report.listened, 'video')}"
        say_done(report, found, report.listened_seconds, "processed")


@sounds.command("show", short_help="Show the sounds detected in a video.")
@click.argument("video")
@options.library
@text_format
@text_file
def show_sounds(video: str, library: str | None, form: str, out: str | None) -> None:
    """Show the sounds detected in a video, with times.

    JSON also has the score of each sound and the name of the detector.

    \b
      momentseek sounds show park.mp4
      momentseek sounds show park.mp4 --format json
    """
    heard = _whole_track(
        library, video, SOUNDS, "sound detection has not been run on it", "its sounds could not be detected"
    )
    if form == "json":
        rows = [{"start": cue.start, "end": cue.end, "label": cue.text, "score": cue.score} for cue in heard.cues]
        text = orjson.dumps({"heard_by": heard.by.model, "sounds": rows}, option=orjson.OPT_INDENT_2).decode() + "\n"
    else:
        text = cues_text(heard.cues, form)
    options.write_text(text, out)


@click.command()
@click.argument("videos", nargs=-1, metavar="[VIDEO]...")
@options.library
@click.option("--again", is_flag=True, help="Also process videos that failed before; process named videos again.")
@click.option("--remove", is_flag=True, help="Delete everything stored about faces.")
@options.wait
@options.quiet
@options.as_json
def people(videos: tuple[str, ...], again: bool, remove: bool, quiet: bool, **given: Any) -> None:
    """Count the faces in videos and note which are close-ups. Nobody is identified.

    It runs only if you call it. Afterwards searches find 'two people', 'a crowd' or 'a close-up'.
    docs/recognition.md explains what is stored and what it cannot do.

    \b
      momentseek models get blazeface
      momentseek people
      momentseek search 'described:"two people"'
      momentseek people --remove
    """
    if remove:
        with open_store(library_folder(given["library"]), create=False, wait=given["wait"]) as opened:
            options.say(f"deleted what was found about faces in {count(opened.forget_people(), 'video')}")
        return
    report = ingest_more(
        lambda opened, tell: opened.find_people(videos, again=again, progress=tell),
        "counting faces",
        again=["people", *videos],
        quiet=quiet,
        **given,
    )
    if not quiet:
        say_done(report, f"faces counted in {count(report.faces, 'video')}", None, "processed")
