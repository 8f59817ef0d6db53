"""``momentseek data features``: compute features of videos and queries, or inspect existing ones."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from momentseek.api.library import open_store
from momentseek.benchmarks.datasets.library_features import LAYOUTS, LibraryFeatures, read_split, write_library_features
from momentseek.benchmarks.datasets.own_lists import PRESET, OwnLists, write_own_lists
from momentseek.cli import options
from momentseek.cli.data import refuse_without
from momentseek.cli.ingesting import IngestLines, conclude, ingest
from momentseek.cli.progress import progress_bar
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library.location import library_folder
from momentseek.library.reader import CLIP_SECONDS
from momentseek.library.store import LibraryStore
from momentseek.models.features.inspection import entry_count, inspect_features, report_text


@click.command()
@click.argument("splits", metavar="[SPLIT=FILE]...", nargs=-1)
@options.library
@click.option(
    "--videos",
    multiple=True,
    type=click.Path(),
    metavar="PATH",
    help="First add these videos or folders to --library (default: a new library, OUT-library); repeatable.",
)
@click.option("--encoder", metavar="NAME", help="With --videos: image encoder (clip, things, hub:NAME, …).")
@click.option(
    "--clip-seconds",
    type=options.Number(0.1, 600),
    metavar="S",
    help="With --videos: length of a clip in seconds. Default: 1.5.",
)
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    default="hdf5",
    show_default=True,
    help="Write HDF5 files, or Moment-DETR's folders with one npz file per video and query.",
)
@click.option(
    "--own-lists",
    is_flag=True,
    help="Make the splits train and val from the library's subtitles and captions, not annotations (docs/ranker.md).",
)
@click.option(
    "--own-text",
    is_flag=True,
    help="Encode queries with the image encoder's own text encoder (one row per query), instead of MiniLM.",
)
@click.option("--inspect", type=click.Path(), metavar="PATH", help="Only describe and check existing features.")
@click.option("--out", type=click.Path(), metavar="DIR", help="Data folder to write.")
@options.force
@options.as_json
def features(
    splits: tuple[str, ...],
    library: str | None,
    videos: tuple[str, ...],
    encoder: str | None,
    clip_seconds: float | None,
    layout: str,
    own_lists: bool,
    own_text: bool,
    inspect: str | None,
    out: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compute features of videos and queries for training, or --inspect existing features.

    Each SPLIT=FILE is a split's name and its annotations, in any format with query texts. The features
    of all videos of the library are written: each clip has one row for its picture and one for what is said in it, each
    query one row per token. data.toml names the files and the encoders, so that `momentseek add --model` can compute
    the same features of new videos.

    \b
    Features of your own annotated videos, to train a model with (docs/encoders.md):
      momentseek add ~/Videos --library films
      momentseek data features train=train.jsonl val=val.jsonl --library films --out films-data
    CLIP features in Moment-DETR's layout, of any videos:
      momentseek data features val=val.jsonl --videos ~/Videos --encoder clip --clip-seconds 2 --layout npz --out clip
    Features to train a ranker with, from a library's subtitles and captions, without annotations (docs/ranker.md):
      momentseek data features --own-lists --library films --out films-data
    Show what a data folder, or a file or folder of features, contains; exit code 1 if something is wrong:
      momentseek data features --inspect films-data
    """
    if inspect is not None:
        _inspect(Path(inspect), as_json)
        return
    if out is None or not (splits or videos or library):
        raise MomentseekError("name splits (train=train.jsonl), --videos or --library, and --out; or --inspect FOLDER")
    truths = _truths(splits)
    if own_lists and truths:
        raise MomentseekError("--own-lists makes the splits train and val; leave SPLIT=FILE out")
    if videos:
        library = library or f"{Path(out).absolute()}-library"
        for file in truths.values():
            read_split(file)  # fails before hours of encoding if something is wrong
        _encode(videos, library, encoder, clip_seconds, own_text)
    else:
        refuse_without("without --videos", encoder="--encoder", clip_seconds="--clip-seconds")
    with LibraryStore.open(library_folder(library), create=False) as opened, TemporaryDirectory() as work:
        lists = write_own_lists(opened, Path(work)) if own_lists else None
        truths = truths if lists is None else lists.files
        preset = PRESET if own_lists else ""
        done = write_library_features(
            opened, truths, Path(out), layout=layout, own_text=own_text, preset=preset, force=force
        )
    _print_written(done, lists, as_json)


def _truths(splits: tuple[str, ...]) -> dict[str, Path]:
    truths: dict[str, Path] = {}
    for given in splits:
        name, _, file = given.partition("=")
        if not file or not name.replace("_", "").replace("-", "").isalnum():
            raise MomentseekError(f"{given}: is not SPLIT=FILE; write for example train=train.jsonl")
        if name in truths:
            raise MomentseekError(f"the split {name} is named twice; name each once")
        truths[name] = Path(file)
    return truths


def _encode(
    videos: tuple[str, ...], library: str, encoder: str | None, clip_seconds: float | None, own_text: bool
) -> None:
    """Add videos to a library with only their pictures and subtitles; those already in it are not read again."""
    folder = library_folder(library)
    with open_store(folder, create=True, encoder=encoder, clip_seconds=clip_seconds or CLIP_SECONDS) as opened:
        if clip_seconds is not None and abs(opened.clip_seconds - clip_seconds) > 1e-9:
            raise MomentseekError(
                f"{folder}: has clips of {opened.clip_seconds:g} s, not {clip_seconds:g}; name another --library"
            )
        if own_text:
            opened.encoders.vision.encode(["a picture"])  # its text side may be missing
        opened.options = replace(opened.options, transcriber=None, ocr_model=None, sound_detector=None)
        display = IngestLines(what="encoding")
        again = options.given_words()
        report = ingest(
            lambda tell: opened.add(videos, progress=tell), display, library=library, as_json=False, again=again
        )
    conclude(report, library=library, as_json=False, quiet=True)
    if not report.in_library:
        raise MomentseekError("none of the videos could be encoded; check the paths")


def _print_written(done: LibraryFeatures, lists: OwnLists | None, as_json: bool) -> None:
    if as_json:
        found = {"folder": str(done.folder), "videos": done.videos, "clips": done.clips, "cues": done.cues}
        made = {} if lists is None else {"lists": {k: v for k, v in asdict(lists).items() if k != "files"}}
        options.echo_json({**found, "queries": dict(done.queries), **made})
        return
    sizes = ", ".join(f"{split} {queries:,}" for split, queries in done.queries.items())
    click.echo(f"{done.folder}: {count(done.videos, 'video')}, {count(done.clips, 'clip')}, {count(done.cues, 'cue')}")
    if sizes:
        click.echo(f"queries: {sizes}")
        if lists is not None and lists.note:
            click.echo(f"note: {lists.note}")
        options.say(f"next: momentseek train {'xml' if lists is None else 'slate'} --data {done.folder} --out RUN")


def _inspect(path: Path, as_json: bool) -> None:
    with progress_bar(entry_count(path), "reading") as advance:
        reports = inspect_features(path, advance)
    problems = [sentence for report in reports for sentence in report.problems]
    if as_json:
        options.echo_json({"streams": [report.as_dict() for report in reports], "problems": problems})
    else:
        click.echo(report_text(reports))
        for sentence in problems:
            click.echo(f"problem: {sentence}")
    if problems:
        sys.exit(1)
