"""``momentseek shard``: make a library in shards, empty or from one that is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.cli.progress import progress_bars
from momentseek.cluster.shards.making import make_elsewhere, make_shards, split_library
from momentseek.core.reports import count
from momentseek.library.location import library_folder, place_text

if TYPE_CHECKING:
    from momentseek.cluster.manifest import ShardManifest


@click.command()
@click.argument("new", metavar="NEW", type=click.Path())
@click.option("--shards", required=True, type=int, metavar="N", help="How many shards; it stays like that.")
@click.option("--from", "source", metavar="LIBRARY", help="Split this library, which stays as it is.")
@click.option("--encoder", metavar="NAME", help="The encoder of pictures of a new, empty library.")
@options.wait
@options.as_json
def command(new: str, shards: int, source: str | None, encoder: str | None, wait: float, as_json: bool) -> None:
    """Make a library in shards: an empty one, or the videos of another split over them.

    Each shard is an ordinary library, and a video belongs to one by the hash of its content. Every
    command takes such a library, and finds in it what it would find in one. Splitting copies;
    nothing is encoded again. Stopped by Ctrl-C, it leaves nothing behind.

    \b
    Split a library over eight shards:
      momentseek shard ./archive --from films --shards 8
    Make an empty one, and fill it:
      momentseek shard ./archive --shards 8
      momentseek add ~/Videos --library ./archive
    In object storage (docs/sharding.md):
      momentseek shard s3://bucket/lib --shards 8
    """

    if source is not None and encoder is not None:
        raise click.UsageError("--encoder is for an empty library; --from LIBRARY keeps the encoder it has.")
    target = Path(library_folder(new)).absolute()
    where = place_text(target)

    def make(into: Path) -> ShardManifest:
        if source is None:
            return make_shards(into, shards, encoder=encoder)
        with progress_bars("splitting") as show:
            folder = Path(library_folder(source)).absolute()
            return split_library(folder, into, shards, wait=wait, progress=show)

    manifest = make(target) if where == str(target) else make_elsewhere(where, make)
    with open_store(target, create=False) as opened:
        videos = [int(one.totals()["videos"]) for one in opened.catalog.parts]
    if as_json:
        options.echo_json({"library": where, "shards": dict(zip(manifest.shards, videos, strict=True))})
    options.say(f"{count(len(videos), 'shard')} with {count(sum(videos), 'video')} in {where}")
