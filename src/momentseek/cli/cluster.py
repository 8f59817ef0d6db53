"""``momentseek shard``, and what commands do on a Ray cluster (``--on``) or with videos elsewhere (``s3://…``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from momentseek.api.library import open_store
from momentseek.cli import options
from momentseek.cli.progress import ProgressLines, progress_bars
from momentseek.cluster.adding import add_on_cluster, refuse_unsharded
from momentseek.cluster.connection import join_cluster
from momentseek.cluster.searching import RayShards
from momentseek.cluster.shard_writer import list_videos
from momentseek.cluster.shards.making import make_elsewhere, make_shards, split_library
from momentseek.cluster.storage.mirror import Mirror, list_files
from momentseek.cluster.tasks import ClusterTask, map_in_order, run_tasks
from momentseek.core.reports import count
from momentseek.library.files import VIDEO_SUFFIXES, find_videos
from momentseek.library.location import is_remote, library_folder, place_text, sources_folder
from momentseek.recognition.encoders.registry import encode_texts

if TYPE_CHECKING:
    from momentseek.cluster.manifest import ShardManifest
    from momentseek.cluster.shard_client import ShardClient
    from momentseek.cluster.shard_writer import WriterSettings
    from momentseek.library.report import AddReport, ShowIngest
    from momentseek.recognition.encoders.protocol import Vectors
    from momentseek.recognition.encoders.text_cache import EncodeChunks


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


def add_on(
    address: str,
    library: Path,
    paths: Sequence[str],
    settings: WriterSettings,
    *,
    recursive: bool,
    exclude: Sequence[str],
    gpus: float,
    tell: ShowIngest,
) -> AddReport:
    """Add videos on the cluster at an address to a library in shards; those elsewhere are fetched by the nodes."""

    refuse_unsharded(library)
    found = find_videos((p for p in paths if not is_remote(p)), recursive=recursive, exclude=exclude, skip=library)
    for path in filter(is_remote, paths):
        found.files += list_videos(path, library)
    with join_cluster(address) as cluster:
        return add_on_cluster(cluster, library, found, settings=settings, gpus=gpus, progress=tell)


def run_on(address: str, tasks: Sequence[ClusterTask], *, quiet: bool = False) -> bool:
    """Carry out tasks on the cluster at an address, with one line of progress; False if they were stopped (Ctrl-C)."""

    lines = ProgressLines(quiet=quiet, silence_seconds=30.0)
    try:
        with join_cluster(address) as cluster:
            for place, _ in run_tasks(cluster, tasks, progress=lambda step: lines.show(str(step))):
                if not quiet:
                    lines.note(f"done: {tasks[place].name}")
    except KeyboardInterrupt:
        return False
    finally:
        lines.clear()
    return True


@contextmanager
def texts_on(address: str, encoder: str) -> Iterator[EncodeChunks]:
    """A way to encode lists of texts on the cluster at an address, joined when there is something to encode."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def spread(texts: Sequence[list[str]]) -> Iterator[Vectors]:
            cluster = stack.enter_context(join_cluster(address))
            tasks = [
                ClusterTask(f"sentences {at + 1} of {len(texts)}", encode_texts, (encoder, some))
                for at, some in enumerate(texts)
            ]
            return map_in_order(cluster, tasks)

        yield spread


@contextmanager
def shards_on(address: str | None, library: Path, replicas: int = 1) -> Iterator[ShardClient | None]:
    """A way to ask a library's shards on the cluster at an address; None if no address is given."""
    if address is None:
        yield None
        return

    refuse_unsharded(library)
    with join_cluster(address) as cluster:
        shards = RayShards(cluster, library, replicas=replicas)
        try:
            shards.wait()
            yield shards
        finally:
            shards.close()


def fetch_videos(paths: Sequence[str], library: Path, display: ProgressLines) -> list[str]:
    """The paths with those elsewhere replaced by the folder that has their copies, fetched unless they are there.

    The copies lie beside the library, in ``NAME-sources``, where every machine that shares the library finds them.
    """

    mirror = Mirror(sources_folder(library))
    local: list[str] = []
    for path in paths:
        if not is_remote(path):
            local.append(path)
            continue
        files = list_files(path, VIDEO_SUFFIXES)
        total, done = sum(file.size for file in files), 0
        for number, file in enumerate(files):
            share = f"{100 * done / max(total, 1):.0f} %"
            display.show(f"fetching  {number:,} of {len(files):,} files  {share}", f"  {file.path}")
            local.append(str(mirror.fetch(path, file)))
            done += file.size
        display.clear()
    return local
