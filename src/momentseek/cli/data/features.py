"""``momentseek data features``: write a library's vectors as features to train a model on."""

from __future__ import annotations

import click

from momentseek.benchmarks.datasets.library_features import write_library_features
from momentseek.cli import options
from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library.location import library_folder
from momentseek.library.store import LibraryStore


@click.command()
@click.argument("splits", metavar="SPLIT=FILE...", nargs=-1, required=True)
@options.library
@click.option("--out", required=True, type=click.Path(), metavar="DIR", help="The data folder to write.")
@options.force
@options.as_json
def command(splits: tuple[str, ...], library: str | None, out: str, force: bool, as_json: bool) -> None:
    """Write a library's vectors as a data folder on which `momentseek train` trains.

    Each SPLIT=FILE is a split's name and its annotations, in any format that holds the queries' texts; videos are
    named by their files, with or without extension. All of the library's videos are written, and all are searched.
    The features are HDF5 files: per 1.5 s clip the frame's vector (video.h5) and the mean vector of what is said in it
    (subtitle.h5), per query a row for each token. data.toml records which encoders made them, so that `momentseek add
    --model` can make the same of new videos.

    \b
    From your own annotated videos to a model that searches them:
      momentseek add ~/Videos --library films
      momentseek data features train=train.jsonl val=val.jsonl --library films --out films-data
      momentseek train xml --data films-data --out films-xml
      momentseek export films-xml --out films-model
      momentseek add ~/Videos --library films-trained --model films-model
    """
    import json
    from pathlib import Path

    truths: dict[str, Path] = {}
    for given in splits:
        name, _, file = given.partition("=")
        if not file or not name.replace("_", "").replace("-", "").isalnum():
            raise MomentseekError(f"{given}: is not SPLIT=FILE; write for example train=train.jsonl")
        if name in truths:
            raise MomentseekError(f"the split {name} is named twice; name each once")
        truths[name] = Path(file)
    with LibraryStore.open(library_folder(library), create=False) as opened:
        done = write_library_features(opened, truths, Path(out), force=force)
    if as_json:
        found = {"folder": str(done.folder), "videos": done.videos, "clips": done.clips, "cues": done.cues}
        click.echo(json.dumps({**found, "queries": dict(done.queries)}, indent=2))
        return
    sizes = ", ".join(f"{split} {queries:,}" for split, queries in done.queries.items())
    click.echo(f"{done.folder}: {count(done.videos, 'video')}, {count(done.clips, 'clip')}, {count(done.cues, 'cue')}")
    click.echo(f"queries: {sizes}")
    options.say(f"next: momentseek train xml --data {done.folder} --out RUN")
