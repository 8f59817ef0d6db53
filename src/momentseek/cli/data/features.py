"""``momentseek data features``: make the features of videos and queries, or describe and check those that exist."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from momentseek.api.library import open_store
from momentseek.benchmarks.datasets.library_features import LAYOUTS, LibraryFeatures, write_library_features
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
    help="Encode these videos and folders first. Without --library, into a library DIR-library, which is kept.",
)
@click.option("--encoder", metavar="NAME", help="With --videos: what encodes pictures (clip, things, hub:…, ….)")
@click.option(
    "--clip-seconds", type=options.Number(0.1, 600), metavar="S", help="With --videos: seconds per row. Default: 1.5."
)
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    default="hdf5",
    show_default=True,
    help="HDF5 files, or folders with an npz per video and query, as Moment-DETR has them.",
)
@click.option("--own-text", is_flag=True, help="Encode queries by the picture encoder, one row each, not by MiniLM.")
@click.option("--inspect", type=click.Path(), metavar="PATH", help="Describe and check features that exist, instead.")
@click.option("--out", type=click.Path(), metavar="DIR", help="The data folder to write.")
@options.force
@options.as_json
def features(
    splits: tuple[str, ...],
    library: str | None,
    videos: tuple[str, ...],
    encoder: str | None,
    clip_seconds: float | None,
    layout: str,
    own_text: bool,
    inspect: str | None,
    out: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Make features of videos and queries on which models are trained, or --inspect those that exist.

    Each SPLIT=FILE is a split's name and its annotations, in any format that holds the queries' texts. All videos of
    the library are written: per clip a row of its picture and one of what is said in it, per query a row per token.
    data.toml names the files and the encoders, so that `momentseek add --model` can make the same of new videos.

    \b
    From your own annotated videos to a model that searches them (docs/models-in-the-library.md):
      momentseek add ~/Videos --library films
      momentseek data features train=train.jsonl val=val.jsonl --library films --out films-data
    CLIP features in Moment-DETR's layout, of any videos:
      momentseek data features val=val.jsonl --videos ~/Videos --encoder clip --clip-seconds 2 --layout npz --out clip
    What a data folder, or one file or folder of features, holds; exit code 1 if something is wrong with it:
      momentseek data features --inspect films-data
    """
    if inspect is not None:
        _inspect(Path(inspect), as_json)
        return
    if out is None or not (splits or videos or library):
        raise MomentseekError("name splits (train=train.jsonl), --videos or --library, and --out; or --inspect FOLDER")
    truths = _truths(splits)
    if videos:
        library = library or f"{Path(out).absolute()}-library"
        _encode(videos, library, encoder, clip_seconds)
    else:
        refuse_without("without --videos", encoder="--encoder", clip_seconds="--clip-seconds")
    with LibraryStore.open(library_folder(library), create=False) as opened:
        done = write_library_features(opened, truths, Path(out), layout=layout, own_text=own_text, force=force)
    _print_written(done, as_json)


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


def _encode(videos: tuple[str, ...], library: str, encoder: str | None, clip_seconds: float | None) -> None:
    """Add videos to a library for their pictures and subtitles alone; what is in it already is not read again."""
    folder = library_folder(library)
    with open_store(folder, create=True, encoder=encoder, clip_seconds=clip_seconds or CLIP_SECONDS) as opened:
        if clip_seconds is not None and abs(opened.clip_seconds - clip_seconds) > 1e-9:
            raise MomentseekError(
                f"{folder}: has clips of {opened.clip_seconds:g} s, not {clip_seconds:g}; name another --library"
            )
        opened.options = replace(opened.options, transcriber=None, ocr_model=None, sound_detector=None)
        display = IngestLines(what="encoding")
        again = options.given_words()
        report = ingest(
            lambda tell: opened.add(videos, progress=tell), display, library=library, as_json=False, again=again
        )
    conclude(report, library=library, as_json=False, quiet=True)
    if not report.in_library:
        raise MomentseekError("none of the videos could be encoded; check the paths")


def _print_written(done: LibraryFeatures, as_json: bool) -> None:
    if as_json:
        found = {"folder": str(done.folder), "videos": done.videos, "clips": done.clips, "cues": done.cues}
        options.echo_json({**found, "queries": dict(done.queries)})
        return
    sizes = ", ".join(f"{split} {queries:,}" for split, queries in done.queries.items())
    click.echo(f"{done.folder}: {count(done.videos, 'video')}, {count(done.clips, 'clip')}, {count(done.cues, 'cue')}")
    if sizes:
        click.echo(f"queries: {sizes}")
        options.say(f"next: momentseek train xml --data {done.folder} --out RUN")


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
