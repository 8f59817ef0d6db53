"""``momentseek shard``, and the tasks that other commands run on a Ray cluster (``--on``)."""

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
@click.option("--shards", required=True, type=int, metavar="N", help="Number of shards; it cannot be changed later.")
@click.option("--from", "source", metavar="LIBRARY", help="Copy the videos of this library into the shards.")
@click.option("--encoder", metavar="NAME", help="Image encoder of a new, empty library.")
@options.wait
@options.as_json
def shard(new: str, shards: int, source: str | None, encoder: str | None, wait: float, as_json: bool) -> None:
    """Create a sharded library NEW: empty, or with the videos of another library.

    Each shard is an ordinary library; the hash of a video's content decides its shard. Every
    command accepts a sharded library, and finds in it what it would find in a single one. Videos
    are copied, not encoded again. If you stop it with Ctrl-C, it leaves nothing behind.

    \b
    Split a library over eight shards:
      momentseek shard ./archive --from films --shards 8
    Create an empty one and add videos:
      momentseek shard ./archive --shards 8
      momentseek add ~/Videos --library ./archive
    In object storage (docs/cluster.md):
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
    """Run tasks on the cluster at an address and show their progress; return False if Ctrl-C stopped them."""

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
