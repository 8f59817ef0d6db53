"""``momentseek add``, ``retry``, ``encode`` and ``reencode``: add videos to the library and encode them."""

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
"""Catalog setting that holds the last ``add`` command, which `status` shows to continue an interrupted one."""


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@options.library
@click.option("--recursive/--no-recursive", default=True, help="Include subfolders. Default: yes.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Skip files or folders that match GLOB; repeatable.")
@click.option(
    "--subtitles", type=click.Path(), metavar="DIR", help="Also look in DIR for these videos' subtitles, now and later."
)
@click.option(
    "--encoder",
    metavar="SPEC",
    help="Encoder of a new library: things+clip (default), things, file:FOLDER or hub:NAME.",
)
@click.option(
    "--model", type=click.Path(), metavar="FOLDER", help="Trained model of a new library (see `momentseek export`)."
)
@click.option(
    "--clip-seconds",
    type=click.FloatRange(0.1, 600),
    default=1.5,
    show_default=True,
    metavar="SECONDS",
    help="Length of a clip in a new library.",
)
@click.option(
    "--transcribe/--no-transcribe",
    default=None,
    help="Transcribe speech in videos without subtitles. Default: yes, if momentseek[speech] is installed.",
)
@click.option(
    "--transcriber", metavar="SPEC", help="Speech recognition model: a name (default: whisper-base) or a folder."
)
@click.option("--ocr/--no-ocr", default=None, help="Recognise text in the frames. Default: $MOMENTSEEK_OCR, else no.")
@options.ocr_model
@click.option(
    "--second-pass/--no-second-pass",
    default=None,
    help="With things+clip: encode with CLIP after all videos are added. Default: yes, if its weights are installed.",
)
@click.option(
    "--sounds/--no-sounds",
    default=None,
    help="Detect sounds other than speech. Default: yes, if installed (`momentseek models get yamnet`).",
)
@click.option(
    "--describe",
    metavar="FOLDER|URL#NAME",
    help="Describe each scene with this captioner (docs/captions.md). Default: none.",
)
@click.option(
    "--sampling",
    type=click.Choice(SAMPLINGS),
    help="Decode every frame (exact), or only frames that are cheap to decode (quick). "
    "Default: $MOMENTSEEK_SAMPLING, else exact.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Number of files to decode in parallel. Default: one per core, at most 4.",
)
@click.option("--hardware", is_flag=True, help="Decode on the graphics card, if PyAV supports it. Default: no.")
@options.on_writers
@click.option(
    "--gpus-per-task", "gpus", type=click.FloatRange(min=0), default=0.0, help="With --on: number of GPUs per task."
)
@click.option(
    "--watch", "watching", is_flag=True, help="Keep running, and add files that appear or change, until Ctrl-C."
)
@options.wait
@options.quiet
@options.as_json
def add(paths: tuple[str, ...], library: str | None, on: str | None, quiet: bool, as_json: bool, **given: Any) -> None:
    """Add videos: files, folders, patterns, or remote addresses such as s3://bucket/films.

    Unchanged files that are already in the library are not read again, and moved files are not
    encoded again. A file that cannot be added is reported, and listed by `momentseek status
    --failed`; the others are still added. You can stop at any time: the next `add` continues from
    there, also after a crash.

    \b
    Everything in a folder, with subtitles from another folder:
      momentseek add ~/Videos --subtitles ~/Subtitles
    Also recognise text on slides and signs (docs/recognition.md):
      momentseek add ~/Talks --ocr
    A large collection, in less time (docs/library.md):
      momentseek add ~/Archive --sampling quick
    Skip drafts, and keep watching the folder:
      momentseek add ~/Videos --exclude 'draft*' --watch
    From a bucket; copies are kept next to the library (docs/library.md):
      momentseek add s3://bucket/films --library films
    On all machines of a cluster (docs/cluster.md):
      momentseek add /mnt/films --library /mnt/library --on ray://head:10001
    With a model trained on your own videos (docs/encoders.md):
      momentseek add ~/Videos --library trained --model films-model

    Exit code: 0 if at least one of the given files is in the library now (others may have failed),
    2 if none is, 130 after Ctrl-C.
    """
    check_paths(path for path in paths if not is_remote(path))
    device = find_device() if given["hardware"] else None
    folder = library_folder(library)
    encoder = _encoder(folder, given["encoder"], given["model"])
    display = IngestLines(quiet=quiet)
    shown: dict[str, Any] = {"library": library, "as_json": as_json}
    again = options.given_words()
    if on is None or place_text(folder) == str(folder):  # nodes without a shared folder fetch the files themselves
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
    """Return the requested encoder spec; the settings file counts only for new libraries."""
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
    """Set the library's options for adding videos."""
    usual = opened.options
    if describe is not None:
        open_scene_captioner(describe, opened)  # fails before anything is added if there is no such captioner
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
    """Return the function that adds videos on a cluster, for ``ingest``; refuse options that have no effect there."""
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
    """Print what was done; raise an error if no file is in the library."""
    if not (report.in_library or report.failed or report.failed_before):
        raise MomentseekError("no videos found; name a file itself to add it whatever its suffix")
    conclude(report, library=library, as_json=as_json, quiet=quiet)
    if not report.in_library:
        seen = options.command_line(["status", "--failed"], library)
        raise MomentseekError(f"no file could be added; see: {seen}")


def _transcriber(transcribe: bool | None, named: str | None, usual: str | None) -> str | None:
    """Return the speech recogniser for added videos, or None.

    >>> _transcriber(None, None, None), _transcriber(False, None, "whisper-base"), _transcriber(True, None, None)
    (None, None, 'whisper-base')
    """
    if transcribe is False:
        return None
    chosen = named or (usual or DEFAULT_TRANSCRIBER if transcribe else usual)
    if chosen is not None and chosen != usual:
        transcriber_fingerprint(chosen)  # fails before anything is added if there is no such model
    return chosen


def _ocr_model(ocr: bool | None, named: str | None, usual: str | None) -> str | None:
    """Return the OCR model for added videos, or None.

    >>> _ocr_model(None, None, None), _ocr_model(False, None, "ppocr-small"), _ocr_model(True, None, None)
    (None, None, 'ppocr-small')
    """
    if ocr is False:
        return None
    chosen = named or (usual or DEFAULT_OCR_MODEL if ocr else usual)
    if chosen is not None:
        ocr_fingerprint(chosen)  # fails before anything is added if there is no such model
    return chosen


def _sound_detector(sounds: bool | None, usual: str | None) -> str | None:
    """Return the sound detector for added videos, or None.

    >>> _sound_detector(None, None), _sound_detector(False, "yamnet"), _sound_detector(True, "yamnet")
    (None, None, 'yamnet')
    """
    if sounds and usual is None:
        weights_file()  # fails before anything is added if there are no weights
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
    """Add files that appear, until Ctrl-C, which is the normal end."""
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
@click.option("--subtitles", type=click.Path(), metavar="DIR", help="Also look for subtitles in DIR.")
@options.wait
@options.quiet
@options.as_json
def retry(library: str | None, subtitles: str | None, wait: float, quiet: bool, as_json: bool) -> None:
    """Try again to add the files that `momentseek status --failed` lists.

    `add` skips a failed file until it changes; `retry` does not. Files that no longer exist are
    removed from the list.

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
@click.option("--again", is_flag=True, help="Also encode videos that failed before.")
@options.wait
@options.quiet
@options.as_json
def encode(videos: tuple[str, ...], again: bool, quiet: bool, **given: Any) -> None:
    """Encode videos with the library's second encoder (CLIP).

    `add` does this for new videos, unless CLIP's weights are missing or --no-second-pass is given.
    You can stop at any time: the next run continues from there.

    \b
    All videos that CLIP has not encoded yet:
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
@click.option("--model", type=click.Path(), metavar="FOLDER", help="A trained model (see `momentseek export`).")
@options.wait
@options.quiet
@options.as_json
def reencode(
    library: str | None, encoder: str | None, model: str | None, wait: float, quiet: bool, as_json: bool
) -> None:
    """Encode all videos again with another encoder or a trained model.

    Searches use the old vectors until all new ones are ready. You can stop at any time: the same
    command continues from there. If a video's file is missing or cannot be read, the library keeps
    its old vectors.

    \b
    From the first offline encoder to both, keeping the existing vectors:
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
