"""What commands do on a Ray cluster, where ``--on`` names one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from momentseek.cluster.shard_writer import WriterSettings
    from momentseek.library import AddReport
    from momentseek.library.ingest.report import ShowIngest
    from momentseek.search.shards.fan_out import FanOut


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
    """Add videos on the cluster at an address to a library in shards."""
    from momentseek.cluster.adding import add_on_cluster, refuse_unsharded
    from momentseek.cluster.connection import join_cluster
    from momentseek.library.files import find_videos

    refuse_unsharded(library)
    found = find_videos(paths, recursive=recursive, exclude=exclude, skip=library)
    with join_cluster(address) as cluster:
        return add_on_cluster(cluster, library, found, settings=settings, gpus=gpus, progress=tell)


@contextmanager
def shards_on(address: str | None, library: Path, replicas: int) -> Iterator[FanOut | None]:
    """A way to ask a library's shards on the cluster at an address; None if no address is given."""
    if address is None:
        yield None
        return
    from momentseek.cluster.adding import refuse_unsharded
    from momentseek.cluster.connection import join_cluster
    from momentseek.cluster.searching import RayShards

    refuse_unsharded(library)
    with join_cluster(address) as cluster:
        shards = RayShards(cluster, library, replicas=replicas)
        try:
            shards.wait()
            yield shards
        finally:
            shards.close()
