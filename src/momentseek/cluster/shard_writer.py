"""ShardWriter: the one writer of a shard, wherever the cluster places it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from momentseek.cluster.sources import RemoteVideo, bring_videos, local_videos
from momentseek.errors import MediaError, MomentseekError
from momentseek.library import known_files
from momentseek.library.catalog import Catalog
from momentseek.library.file_stamp import Stamp
from momentseek.library.files import VideoFile
from momentseek.library.ingest.report import AddReport
from momentseek.library.replicas.opening import bring_shard
from momentseek.library.store import LibraryStore
from momentseek.media.sampling import Sampling
from momentseek.storage.address import UnreachableError

LOCK_SECONDS = 120.0
"""How long a writer waits for one that has just died to be noticed."""


@dataclass(frozen=True)
class WriterSettings:
    """What an ``add`` was told, for every shard alike."""

    subtitles: Path | None = None
    transcriber: str | None = None
    reader: str | None = None
    sampling: Sampling | None = None
    """How pictures are chosen; None as the settings of each node say."""


class ShardWriter:
    """Adds videos to one shard; as an actor, it is begun anew on another node if its own dies, and goes on from there.

    What a shard holds is committed video by video, so that nothing is added twice and nothing whole is lost. ``holder``
    names all that one ``add`` begins for a shard: the next one need not wait until the lease of a dead one ends.
    """

    def __init__(self, place: str, settings: WriterSettings, holder: str | None = None) -> None:
        self._place, self._settings, self._holder = place, settings, holder
        self._opened: LibraryStore | None = None

    def add(self, files: Sequence[VideoFile]) -> AddReport:
        """Add videos; those that are there and have not changed are not read."""
        with self._open() as store:
            return store.add_found(bring_videos(files, self._place), subtitles=self._settings.subtitles)

    def drop(self, paths: Sequence[Path]) -> None:
        """Take files out whose new content belongs to another shard."""
        with self._open() as store:
            store.remove(paths)

    @contextmanager
    def _open(self) -> Iterator[LibraryStore]:
        """The shard's library, opened once; and anew after storage did not answer, when nobody knows what it holds."""
        if self._opened is None:
            store = LibraryStore.open(bring_shard(self._place), create=False, wait=LOCK_SECONDS)
            store.lease_holder = self._holder
            store.transcriber, store.reader = self._settings.transcriber, self._settings.reader
            if self._settings.sampling is not None:
                store.sampling = self._settings.sampling
            self._opened = store
        try:
            yield self._opened
        except UnreachableError:
            with suppress(MomentseekError):
                self._opened.close()
            self._opened = None
            raise


def known_states(place: str, files: Sequence[VideoFile], subtitles: Path | None) -> list[str]:
    """Of each file, what a shard, named by its folder or address, knows: ``unchanged``, ``failed`` before and unchanged
    since, ``held`` with other subtitles, ``changed``, or nothing.
    """
    with closing(Catalog(bring_shard(place))) as catalog:
        return [_known_state(catalog, file, subtitles) for file in local_videos(files, place)]


def _known_state(catalog: Catalog, file: VideoFile, subtitles: Path | None) -> str:
    found = known_files.file_at(catalog, file.path)
    try:
        stamp = file.stamp if isinstance(file, RemoteVideo) else Stamp.of(file.source)
    except MediaError:
        return "held" if found is not None else ""
    if found is None:
        return "failed" if known_files.earlier_failure(catalog, file.path, stamp) else ""
    if not found.same(stamp):
        return "changed"
    folder = subtitles or (Path(found.subtitles[0]) if found.subtitles and found.subtitles[0] else None)
    return "unchanged" if known_files.subtitle_marks(file.path, folder) == found.subtitles else "held"
