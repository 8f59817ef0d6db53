"""What commands do on a Ray cluster, where ``--on`` names one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from momentseek.cluster.shard_writer import WriterSettings
    from momentseek.library import AddReport
    from momentseek.library.ingest.report import ShowIngest


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
