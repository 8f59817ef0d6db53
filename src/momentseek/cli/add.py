"""``momentseek add``, ``retry``, ``encode`` and ``reencode``: put videos into the library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.cli.downloads import offer_models
from momentseek.cli.ingesting import IngestLines, conclude, ingest, ingest_more, say_done, stoppable
from momentseek.cluster.adding import add_on
from momentseek.cluster.manifest import is_sharded
from momentseek.cluster.shard_writer import WriterSettings
from momentseek.cluster.storage.mirror import fetch_videos
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library.database import CATALOG_FILE
from momentseek.library.encoders import FIRST_ENCODER, vision_spec
from momentseek.library.files import check_paths
from momentseek.library.location import is_remote, library_folder, place_text
from momentseek.library.report import AddInterrupted, AddReport
from momentseek.library.store import LibraryStore, subtitles_folder, watch
from momentseek.library.tracks.captions import open_scene_captioner
from momentseek.media.container import find_device
from momentseek.media.decode import SAMPLINGS
from momentseek.recognition.ocr.models import DEFAULT_OCR_MODEL, default_ocr_model, ocr_fingerprint
from momentseek.recognition.sounds.yamnet import YAMNET, default_sound_detector, weights_file
from momentseek.recognition.speech.models import DEFAULT_TRANSCRIBER, default_transcriber, transcriber_fingerprint

ADD_WORDS_SETTING = "add_words"
"""The catalog's setting that keeps the last command that added videos, for `status` to name it."""


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@options.library
@click.option("--recursive/--no-recursive", default=True, help="Look into folders in folders. Default: yes.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Skip files or folders that match GLOB; repeatable.")
@click.option(
    "--subtitles", type=click.Path(), metavar="DIR", help="Look for subtitles in DIR too; remembered for these videos."
)
@click.option(
    "--encoder",
    metavar="SPEC",
    help="For a new library: things+clip (default), things, file:FOLDER or hub:NAME.",
)
@click.option(
    "--model", type=click.Path(), metavar="FOLDER", help="For a new library: a trained model (`momentseek export`)."
)
@click.option(
    "--clip-seconds",
    type=click.FloatRange(0.1, 600),
    default=1.5,
    show_default=True,
    help="For a new library: length of a clip.",
)
@click.option(
    "--transcribe/--no-transcribe",
    default=None,
    help="Transcribe speech in videos without subtitles. Default: yes, if momentseek[speech] is installed.",
)
@click.option("--transcriber", metavar="SPEC", help="Speech recognition model, or a FOLDER (default: whisper-base).")
@click.option("--ocr/--no-ocr", default=None, help="Read text in the pictures. Default: no, or as MOMENTSEEK_OCR says.")
@options.ocr_model
@click.option(
    "--second-pass/--no-second-pass",
    default=None,
    help="Encode by CLIP too, once all videos can be searched. Default: yes, if its weights are here.",
)
@click.option(
    "--sounds/--no-sounds",
    default=None,
    help="Hear sounds other than speech. Default: yes, after `momentseek models get yamnet`.",
)
@click.option(
    "--describe",
    metavar="FOLDER|URL#NAME",
    help="Describe each scene with a captioner: docs/captions.md. Default: none.",
)
@click.option(
    "--sampling",
    type=click.Choice(SAMPLINGS),
    help="Decode every picture, or only what is cheap and near enough. Default: exact, or as MOMENTSEEK_SAMPLING says.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Number of files to decode in parallel. Default: one for each core, at most 4.",
)
@click.option("--hardware", is_flag=True, help="Let a graphics card decode, if PyAV can use the one here. Default: no.")
@options.on_writers
@click.option(
    "--gpus-per-task", "gpus", type=click.FloatRange(min=0), default=0.0, help="With --on: GPUs that each writer needs."
)
@click.option("--watch", "watching", is_flag=True, help="Stay, and add what appears or changes, until Ctrl-C.")
@options.wait
@options.quiet
@options.as_json
def add(paths: tuple[str, ...], library: str | None, on: str | None, quiet: bool, as_json: bool, **given: Any) -> None:
    """Add videos: files, folders and patterns, or addresses such as s3://bucket/films.

    Files that are in the library and have not changed are not read again; a file that was moved
    keeps its vectors. A file that cannot be added is reported, and listed by `momentseek status
    --failed`; the others are added all the same. Stop it at any time, by Ctrl-C or worse: the
    next `add` continues from there.

    \b
    Everything in a folder, with subtitles that lie elsewhere:
      momentseek add ~/Videos --subtitles ~/Subtitles
    With what is written on slides and signs (docs/ocr.md):
      momentseek add ~/Talks --ocr
    A large collection, in less time (docs/library.md):
      momentseek add ~/Archive --sampling quick
    Not the drafts, and keep watching:
      momentseek add ~/Videos --exclude 'draft*' --watch
    From a bucket; the copies are kept next to the library (docs/library.md):
      momentseek add s3://bucket/films --library films
    On all machines of a cluster (docs/cluster.md):
      momentseek add /mnt/films --library /mnt/library --on ray://head:10001
    With a model trained on one's own videos (docs/models-in-the-library.md):
      momentseek add ~/Videos --library trained --model films-model

    Exit code: 0 if any file is in the library now, 2 if none is, 130 after Ctrl-C.
    """
    check_paths(path for path in paths if not is_remote(path))
    device = find_device() if given["hardware"] else None
    folder = library_folder(library)
    encoder = _encoder(folder, given["encoder"], given["model"])
    display = IngestLines(quiet=quiet)
    shown: dict[str, Any] = {"library": library, "as_json": as_json}
    again = options.given_words()
    if on is None or place_text(folder) == str(folder):  # nodes that share no folder fetch for themselves
        paths = tuple(fetch_videos(paths, folder, display.show))
        display.clear()
    found = {"recursive": given["recursive"], "exclude": given["exclude"], "subtitles": given["subtitles"]}
    if on is not None:
        report = ingest(_cluster_work(on, folder, paths, **given), display, again=again, **shown)
        _end(report, library, as_json=as_json, quiet=quiet)
        return
    new = {"encoder": encoder, "clip_seconds": given["clip_seconds"]}
    with open_store(folder, create=True, wait=given["wait"], **new) as opened:
        if vision_spec(opened.catalog).startswith(FIRST_ENCODER):
            offer_models(quiet)
        _choose(opened, device, **given)
        opened.catalog.set(ADD_WORDS_SETTING, options.given_words(absolute=True))
        if given["watching"]:
            _watch(opened, paths, display, library, as_json, **found)
            return
        report = ingest(lambda tell: opened.add(paths, progress=tell, **found), display, again=again, **shown)
    _end(report, library, as_json=as_json, quiet=quiet)


def _encoder(folder: Path, encoder: str | None, model: str | None) -> str | None:
    """The encoder's spec that is asked for; what the settings file says is for new libraries only."""
    if place_text(folder) != str(folder) or is_sharded(folder) or (folder / CATALOG_FILE).is_file():
        encoder, model = options.unless_setting("encoder", encoder), options.unless_setting("model", model)
    return options.encoder_or_model(encoder, model)


def _choose(
    opened: LibraryStore,
    device: str | None,
    *,
    transcribe: bool | None,
    transcriber: str | None,
    ocr: bool | None,
    ocr_model: str | None,
    sounds: bool | None,
    describe: str | None,
    second_pass: bool | None,
    sampling: Any,
    jobs: int | None,
    **_: Any,
) -> None:
    """Tell the library how videos are to be added."""
    usual = opened.options
    if describe is not None:
        open_scene_captioner(describe, opened)  # refuses one that is not there before anything is added
    opened.options = replace(
        usual,
        transcriber=_transcriber(transcribe, transcriber, usual.transcriber),
        ocr_model=_ocr_model(ocr, ocr_model, usual.ocr_model),
        sound_detector=_sound_detector(sounds, usual.sound_detector),
        captioner=describe,
        second_pass=usual.second_pass if second_pass is None else second_pass,
        sampling=sampling or usual.sampling,
        jobs=jobs,
        hardware=device,
    )


def _cluster_work(on: str, folder: Path, paths: tuple[str, ...], **given: Any) -> Any:
    """The work of adding on a cluster, for ``ingest``; options that mean nothing there are refused."""
    if given["watching"] or given["describe"] is not None:
        raise MomentseekError("on a cluster (--on), videos are neither watched nor described; leave that out")
    if given["jobs"] is not None or given["hardware"]:
        raise MomentseekError("on a cluster (--on), --jobs and --hardware mean nothing; leave them out")
    settings = WriterSettings(
        subtitles_folder(given["subtitles"]),
        _transcriber(given["transcribe"], given["transcriber"], default_transcriber()),
        _ocr_model(given["ocr"], given["ocr_model"], default_ocr_model()),
        _sound_detector(given["sounds"], default_sound_detector()),
        given["second_pass"] is not False,
        given["sampling"],
    )
    found = {"recursive": given["recursive"], "exclude": given["exclude"], "gpus": given["gpus"]}
    return lambda tell: add_on(on, folder, paths, settings, tell=tell, **found)


def _end(report: AddReport, library: str | None, *, as_json: bool, quiet: bool) -> None:
    """Say what was done; an error if no file is in the library."""
    if not (report.in_library or report.failed or report.failed_before):
        raise MomentseekError("no videos there; name a file to add it whatever it is called")
    conclude(report, library=library, as_json=as_json, quiet=quiet)
    if not report.in_library:
        seen = options.command_line(["status", "--failed"], library)
        raise MomentseekError(f"no file could be added; see: {seen}")


def _transcriber(transcribe: bool | None, named: str | None, usual: str | None) -> str | None:
    """The recogniser that transcribes the videos that are added; None for none.

    >>> _transcriber(None, None, None), _transcriber(False, None, "whisper-base"), _transcriber(True, None, None)
    (None, None, 'whisper-base')
    """
    if transcribe is False:
        return None
    chosen = named or (usual or DEFAULT_TRANSCRIBER if transcribe else usual)
    if chosen is not None and chosen != usual:
        transcriber_fingerprint(chosen)  # refuses one that is not there before anything is added
    return chosen


def _ocr_model(ocr: bool | None, named: str | None, usual: str | None) -> str | None:
    """The OCR model that reads the videos that are added; None for none.

    >>> _ocr_model(None, None, None), _ocr_model(False, None, "ppocr-small"), _ocr_model(True, None, None)
    (None, None, 'ppocr-small')
    """
    if ocr is False:
        return None
    chosen = named or (usual or DEFAULT_OCR_MODEL if ocr else usual)
    if chosen is not None:
        ocr_fingerprint(chosen)  # refuses one that is not there before anything is added
    return chosen


def _sound_detector(sounds: bool | None, usual: str | None) -> str | None:
    """What hears sounds in the videos that are added; None for nothing.

    >>> _sound_detector(None, None), _sound_detector(False, "yamnet"), _sound_detector(True, "yamnet")
    (None, None, 'yamnet')
    """
    if sounds and usual is None:
        weights_file()  # refuses weights that are not there before anything is added
        return YAMNET
    return None if sounds is False else usual


def _watch(
    opened: LibraryStore,
    paths: tuple[str, ...],
    display: IngestLines,
    library: str | None,
    as_json: bool,
    *,
    recursive: bool,
    exclude: tuple[str, ...],
    subtitles: str | None,
) -> None:
    """Add what appears, until Ctrl-C, which is how this ends well."""
    reports = watch(
        opened, paths, recursive=recursive, exclude=exclude, subtitles=subtitles_folder(subtitles), progress=display
    )
    if not display.quiet:
        options.say("watching; Ctrl-C ends it")
    try:
        with stoppable():
            for report in reports:
                display.clear()
                if report.in_library > report.unchanged or report.failed:
                    conclude(report, library=library, as_json=as_json, quiet=display.quiet)
    except AddInterrupted as e:
        display.clear()
        conclude(e.report, library=library, as_json=as_json, quiet=display.quiet)
    except KeyboardInterrupt:
        pass
    if not display.quiet:
        options.say("stopped watching; what is done is kept")


@click.command()
@options.library
@click.option("--subtitles", type=click.Path(), metavar="DIR", help="Look for subtitles in DIR too.")
@options.wait
@options.quiet
@options.as_json
def retry(library: str | None, subtitles: str | None, wait: float, quiet: bool, as_json: bool) -> None:
    """Try again to add the files that `momentseek status --failed` lists.

    `add` leaves a file that failed alone until it changes; `retry` does not. Files that no longer
    exist are taken off the list.

    \b
    After installing what was missing, or repairing a disk:
      momentseek retry
    """
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        report = ingest(
            lambda tell: opened.retry(progress=tell, subtitles=subtitles),
            IngestLines(quiet=quiet, what="retrying"),
            library=library,
            as_json=as_json,
            again=["retry"] if subtitles is None else ["retry", "--subtitles", subtitles],
        )
    conclude(report, library=library, as_json=as_json, quiet=quiet)


@click.command()
@click.argument("videos", nargs=-1, metavar="[VIDEO]...")
@options.library
@click.option("--again", is_flag=True, help="Also try videos that failed before.")
@options.wait
@options.quiet
@options.as_json
def encode(videos: tuple[str, ...], again: bool, quiet: bool, **given: Any) -> None:
    """Encode videos by the second of a library's two encoders (CLIP).

    `add` does the same for what it adds, unless the weights of CLIP are missing or it is asked not
    to. Stop it at any time: the next call continues from there.

    \b
    All videos that wait:
      momentseek models get
      momentseek encode
    Some of them:
      momentseek encode 'talks/*'
    """
    report = ingest_more(
        lambda opened, tell: opened.encode(videos, again=again, progress=tell),
        "encoding",
        again=["encode", *videos],
        quiet=quiet,
        **given,
    )
    if not quiet:
        say_done(report, f"{count(report.seen, 'video')} encoded by both encoders", report.seen_seconds, "encoded")


@click.command()
@options.library
@click.option("--encoder", metavar="SPEC", help="The new encoder: things+clip, things, file:FOLDER or hub:NAME.")
@click.option("--model", type=click.Path(), metavar="FOLDER", help="A trained model (`momentseek export`).")
@options.wait
@options.quiet
@options.as_json
def reencode(
    library: str | None, encoder: str | None, model: str | None, wait: float, quiet: bool, as_json: bool
) -> None:
    """Encode all videos again with another encoder or a trained model.

    Searches use the old vectors until all new ones are there, and then the new ones. It can be
    stopped at any time; the same command continues. If a video's file is missing or cannot be
    read, the library keeps its old vectors and nothing is lost.

    \b
    From the first offline encoder to both, keeping the vectors that it has made:
      momentseek reencode --encoder things+clip
    From the offline encoders to a downloaded one:
      momentseek models get siglip2-base
      momentseek reencode --encoder hub:siglip2-base
    """
    spec = options.encoder_or_model(encoder, model)
    if spec is None:
        raise click.UsageError("no encoder is named; give --encoder SPEC or --model FOLDER")
    with open_store(library_folder(library), create=False, wait=wait) as opened:
        report = ingest(
            lambda tell: opened.reencode(spec, progress=tell),
            IngestLines(quiet=quiet, what="encoding again"),
            library=library,
            as_json=as_json,
            again=["reencode", "--encoder", spec],
        )
    conclude(report, library=library, as_json=as_json, quiet=quiet)
