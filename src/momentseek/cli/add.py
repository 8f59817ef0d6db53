"""``momentseek add``: put videos into the library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.cli.clustering import add_on, fetch_videos
from momentseek.cli.ingesting import IngestLines, conclude, ingest, stoppable
from momentseek.cluster.manifest import is_sharded
from momentseek.cluster.shard_writer import WriterSettings
from momentseek.core.errors import MomentseekError
from momentseek.library.database import CATALOG_FILE
from momentseek.library.files import check_paths
from momentseek.library.ingest.captions import open_scene_captioner
from momentseek.library.ingest.report import AddInterrupted
from momentseek.library.location import is_remote, library_folder, place_text
from momentseek.library.store import LibraryStore, subtitles_folder, watch
from momentseek.media.container import find_device
from momentseek.media.decode import SAMPLINGS, Sampling
from momentseek.recognition.ocr.models import DEFAULT_OCR_MODEL, default_ocr_model, ocr_fingerprint
from momentseek.recognition.speech.models import DEFAULT_TRANSCRIBER, default_transcriber, transcriber_fingerprint

if TYPE_CHECKING:
    from momentseek.library.ingest.report import AddReport


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@options.library
@click.option("--recursive/--no-recursive", default=True, help="Look into folders in folders. Default: yes.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Files or folders to pass over; repeatable.")
@click.option(
    "--subtitles", type=click.Path(), metavar="DIR", help="Look for subtitles here too; remembered for these videos."
)
@click.option("--encoder", metavar="SPEC", help="For a new library: things (default), file:FOLDER or hub:NAME.")
@click.option(
    "--model", type=click.Path(), metavar="FOLDER", help="For a new library: a trained model (`momentseek export`)."
)
@click.option(
    "--clip-seconds", type=click.FloatRange(0.1, 600), default=1.5, show_default=True, help="For a new library."
)
@click.option(
    "--transcribe/--no-transcribe",
    default=None,
    help="Hear what is said where there are no subtitles. Default: yes, if momentseek[speech] is installed.",
)
@click.option("--transcriber", metavar="SPEC", help="What hears: whisper-base (default), another by name, or a FOLDER.")
@click.option(
    "--ocr/--no-ocr", default=None, help="Read what is written in the pictures. Default: no, or as MOMENTSEEK_OCR says."
)
@click.option("--reader", metavar="SPEC", help="What reads: ppocr-small (default), or ppocr:FOLDER.")
@click.option(
    "--describe",
    metavar="FOLDER|URL#NAME",
    help="Have a captioner describe each scene: docs/captions.md. Default: none.",
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
    help="Read so many files at once. Default: one for each core, at most 4.",
)
@click.option("--hardware", is_flag=True, help="Let a graphics card decode, if PyAV can use the one here. Default: no.")
@click.option(
    "--on",
    metavar="ADDRESS",
    help="Add on a Ray cluster (ray://HOST:10001, auto, local) to a library in shards: docs/cluster.md.",
)
@click.option(
    "--gpus-per-task", "gpus", type=click.FloatRange(min=0), default=0.0, help="With --on: GPUs that each writer needs."
)
@click.option("--watch", "watching", is_flag=True, help="Stay, and add what appears or changes, until Ctrl-C.")
@options.wait
@options.quiet
@options.as_json
def command(
    paths: tuple[str, ...],
    library: str | None,
    recursive: bool,
    exclude: tuple[str, ...],
    subtitles: str | None,
    encoder: str | None,
    model: str | None,
    clip_seconds: float,
    transcribe: bool | None,
    transcriber: str | None,
    ocr: bool | None,
    reader: str | None,
    describe: str | None,
    sampling: Sampling | None,
    jobs: int | None,
    hardware: bool,
    on: str | None,
    gpus: float,
    watching: bool,
    wait: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Add videos: files, folders and patterns, or addresses such as s3://bucket/films.

    Files that are in the library and have not changed are not read again; a file that was moved
    keeps its vectors. A file that cannot be added is reported, and listed by `momentseek status
    --failed`; the others are added all the same. Stop it at any time, by Ctrl-C or worse: the
    next `add` continues from there.

    \b
    Everything in a folder, with subtitles that lie elsewhere:
      momentseek add ~/Videos --subtitles ~/Subtitles
    With what is written on slides and signs (docs/reading.md):
      momentseek add ~/Talks --ocr
    A large collection, in less time (docs/library.md):
      momentseek add ~/Archive --sampling quick
    Not the drafts, and keep watching:
      momentseek add ~/Videos --exclude 'draft*' --watch
    From a bucket; the copies are kept beside the library (docs/library.md):
      momentseek add s3://bucket/films --library films
    On all machines of a cluster (docs/cluster.md):
      momentseek add /mnt/films --library /mnt/library --on ray://head:10001
    With a model trained on one's own videos (docs/models-in-the-library.md):
      momentseek add ~/Videos --library trained --model films-model

    Exit code: 0 if any file is in the library now, 2 if none is, 130 after Ctrl-C.
    """

    check_paths(path for path in paths if not is_remote(path))
    device = find_device() if hardware else None
    folder = library_folder(library)
    elsewhere = place_text(folder) != str(folder)
    if elsewhere or is_sharded(folder) or (folder / CATALOG_FILE).is_file():  # settings are for new libraries
        encoder, model = options.unless_setting("encoder", encoder), options.unless_setting("model", model)
    encoder = options.encoder_or_model(encoder, model)
    display = IngestLines(quiet=quiet)
    meant = paths
    if on is None or not elsewhere:  # the nodes share no folder otherwise, and fetch for themselves
        paths = tuple(fetch_videos(paths, folder, display))
    if on is not None:
        if watching or describe is not None:
            raise MomentseekError("on a cluster (--on), videos are neither watched nor described; leave that out")
        if jobs is not None or hardware:
            raise MomentseekError("on a cluster (--on), --jobs and --hardware mean nothing; leave them out")
        told = WriterSettings(
            subtitles_folder(subtitles),
            _transcriber(transcribe, transcriber, default_transcriber()),
            _reader(ocr, reader, default_ocr_model()),
            sampling,
        )
        report = ingest(
            lambda tell: add_on(on, folder, paths, told, recursive=recursive, exclude=exclude, gpus=gpus, tell=tell),
            display,
            library=library,
            as_json=as_json,
            again=[*_again(meant, recursive, exclude, subtitles, sampling), "--on", on],
        )
        _end(report, library, as_json=as_json, quiet=quiet)
        return
    with open_store(folder, create=True, encoder=encoder, clip_seconds=clip_seconds, wait=wait) as opened:
        opened.transcriber = _transcriber(transcribe, transcriber, opened.transcriber)
        opened.reader = _reader(ocr, reader, opened.reader)
        if describe is not None:
            open_scene_captioner(describe, opened)  # refuses one that is not there before anything is added
            opened.describer = describe
        if sampling is not None:
            opened.sampling = sampling
        opened.jobs, opened.hardware = jobs, device
        if watching:
            _watch(opened, paths, recursive, exclude, subtitles, display, library, as_json)
            return
        report = ingest(
            lambda tell: opened.add(paths, recursive=recursive, exclude=exclude, subtitles=subtitles, progress=tell),
            display,
            library=library,
            as_json=as_json,
            again=_again(meant, recursive, exclude, subtitles, sampling),
        )
    _end(report, library, as_json=as_json, quiet=quiet)


def _end(report: AddReport, library: str | None, *, as_json: bool, quiet: bool) -> None:
    """Say what was done; an error if no file is in the library."""

    if not (report.in_library or report.failed or report.failed_before):
        raise MomentseekError("no videos there; name a file to add it whatever it is called")
    conclude(report, library=library, as_json=as_json, quiet=quiet)
    if not report.in_library:
        seen = options.command_line(["status", "--failed"], library)
        raise MomentseekError(f"no file could be added; see: {seen}")


def _transcriber(transcribe: bool | None, named: str | None, usual: str | None) -> str | None:
    """What hears the videos that are added; None if they are not to be heard.

    >>> _transcriber(None, None, None), _transcriber(False, None, "whisper-base"), _transcriber(True, None, None)
    (None, None, 'whisper-base')
    """

    if transcribe is False:
        return None
    chosen = named or (usual or DEFAULT_TRANSCRIBER if transcribe else usual)
    if chosen is not None and chosen != usual:
        transcriber_fingerprint(chosen)  # refuses one that is not there before anything is added
    return chosen


def _reader(ocr: bool | None, named: str | None, usual: str | None) -> str | None:
    """What reads the videos that are added; None if they are not to be read.

    >>> _reader(None, None, None), _reader(False, None, "ppocr-small"), _reader(True, None, None)
    (None, None, 'ppocr-small')
    """

    if ocr is False:
        return None
    chosen = named or (usual or DEFAULT_OCR_MODEL if ocr else usual)
    if chosen is not None:
        ocr_fingerprint(chosen)  # refuses one that is not there before anything is added
    return chosen


def _again(
    paths: tuple[str, ...], recursive: bool, exclude: tuple[str, ...], subtitles: str | None, sampling: str | None
) -> list[str]:
    """The words that go on with it; the encoder and the length of clips are the library's by now.

    >>> _again(("a", "b"), False, ("old*",), None, "quick")
    ['add', 'a', 'b', '--no-recursive', '--exclude', 'old*', '--sampling', 'quick']
    """
    words = ["add", *paths, *([] if recursive else ["--no-recursive"])]
    words += [word for glob in exclude for word in ("--exclude", glob)]
    words += [] if subtitles is None else ["--subtitles", subtitles]
    return words if sampling is None else [*words, "--sampling", sampling]


def _watch(
    opened: object,
    paths: tuple[str, ...],
    recursive: bool,
    exclude: tuple[str, ...],
    subtitles: str | None,
    display: IngestLines,
    library: str | None,
    as_json: bool,
) -> None:
    """Add what appears, until Ctrl-C, which is how this ends well."""

    assert isinstance(opened, LibraryStore)
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
