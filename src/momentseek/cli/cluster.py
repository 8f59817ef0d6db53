"""``momentseek shard``, and tasks of other commands on a Ray cluster (``--on``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from momentseek.cli import options
from momentseek.cli.progress import ProgressLines, progress_bars
from momentseek.cluster.shards.making import make_sharded
from momentseek.cluster.tasks import ClusterTask, run_tasks_on
from momentseek.core.reports import count
from momentseek.library.location import library_folder, place_text


@click.command()
@click.argument("new", metavar="NEW", type=click.Path())
@click.option("--shards", required=True, type=int, metavar="N", help="How many shards; it stays like that.")
@click.option("--from", "source", metavar="LIBRARY", help="Split this library, which stays as it is.")
@click.option("--encoder", metavar="NAME", help="The encoder of pictures of a new, empty library.")
@options.wait
@options.as_json
def shard(new: str, shards: int, source: str | None, encoder: str | None, wait: float, as_json: bool) -> None:
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
    with progress_bars("splitting") as show:
        folder = None if source is None else Path(library_folder(source)).absolute()
        videos = make_sharded(target, shards, source=folder, encoder=encoder, wait=wait, progress=show)
    if as_json:
        options.echo_json({"library": where, "shards": videos})
    options.say(f"{count(len(videos), 'shard')} with {count(sum(videos.values()), 'video')} in {where}")


def run_on(address: str, tasks: Sequence[ClusterTask], *, quiet: bool = False) -> bool:
    """Carry out tasks on the cluster at an address, with one line of progress; False if they were stopped (Ctrl-C)."""

    lines = ProgressLines(quiet=quiet, silence_seconds=30.0)
    try:
        for place, _ in run_tasks_on(address, tasks, progress=lambda step: lines.show(str(step))):
            if not quiet:
                lines.note(f"done: {tasks[place].name}")
    except KeyboardInterrupt:
        return False
    finally:
        lines.clear()
    return True
