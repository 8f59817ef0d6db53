"""ShardWriter: the one writer of a shard, wherever the cluster places it, and the videos it fetches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from momentseek.cluster.replicas.place import shard_folder
from momentseek.cluster.replicas.replica import bring_shard
from momentseek.cluster.storage.address import StoreUnreachableError
from momentseek.cluster.storage.mirror import Mirror, RemoteFile, list_files
from momentseek.core.errors import MediaError, MomentseekError
from momentseek.library import known_files
from momentseek.library.catalog import Catalog
from momentseek.library.file_stamp import Stamp
from momentseek.library.files import VIDEO_SUFFIXES, FoundFiles, VideoFile
from momentseek.library.location import sources_folder
from momentseek.library.report import AddReport
from momentseek.library.store import LibraryStore
from momentseek.media.decode import Sampling


@dataclass(frozen=True)
class RemoteVideo(VideoFile):
    """A video elsewhere; its path is where its copy lies once a node has fetched it."""

    address: str = ""
    remote: RemoteFile | None = None

    @property
    def stamp(self) -> Stamp:
        """The stamp that its copy has on any node."""
        assert self.remote is not None
        return Stamp(self.remote.size, self.remote.modified_ns, 0)


def list_videos(address: str, library: Path) -> list[RemoteVideo]:
    """The videos at an address, to be fetched next to the replica of a library in object storage."""
    mirror = Mirror(sources_folder(library))
    return [
        RemoteVideo(path, path.name, file.size, address, file)
        for file in list_files(address, VIDEO_SUFFIXES)
        for path in [mirror.path_of(file)]
    ]


def local_videos(files: Sequence[VideoFile], shard: str) -> list[VideoFile]:
    """Videos with the paths that their copies have on this node; a shard of the library is named by its place."""
    mirror = Mirror(sources_folder(shard_folder(shard).parent))
    return [
        RemoteVideo(mirror.path_of(file.remote), file.name, file.size, file.address, file.remote)
        if isinstance(file, RemoteVideo) and file.remote is not None
        else file
        for file in files
    ]


def bring_videos(files: Sequence[VideoFile], shard: str) -> FoundFiles:
    """Fetch the videos that are elsewhere and have no copy on this node; what cannot be fetched is unusable.

    Storage that does not answer says nothing of a video: StoreUnreachableError.
    """
    mirror = Mirror(sources_folder(shard_folder(shard).parent))
    found = FoundFiles()
    for file in local_videos(files, shard):
        try:
            if isinstance(file, RemoteVideo) and file.remote is not None:
                mirror.fetch(file.address, file.remote)
            found.files.append(VideoFile(file.path, file.name, file.size))
        except StoreUnreachableError:
            raise
        except MomentseekError as e:
            found.unusable.append((file.path, str(e)))
    return found


LOCK_SECONDS = 120.0
"""How long a writer waits for one that has just died to be noticed."""


@dataclass(frozen=True)
class WriterSettings:
    """Options of an ``add``, the same for every shard."""

    subtitles: Path | None = None
    transcriber: str | None = None
    reader: str | None = None
    sound_detector: str | None = None
    second_pass: bool = True
    sampling: Sampling | None = None
    """How pictures are chosen; None as the settings of each node say."""


class ShardWriter:
    """Adds videos to one shard; as an actor, it is started again on another node if its own dies.

    What a shard holds is committed video by video, so that nothing is added twice and nothing whole is lost. ``holder``
    names all that one ``add`` begins for a shard: the next one need not wait until the lease of a dead one ends.
    """

    def __init__(self, place: str, settings: WriterSettings, holder: str | None = None) -> None:
        self._place, self._settings, self._holder = place, settings, holder
        self._opened: LibraryStore | None = None

    def add(self, files: Sequence[VideoFile]) -> AddReport:
        """Add videos; those that are there and have not changed are not read."""
        with self._open() as store:
            return store.add_found(bring_videos(files, self._place))

    def drop(self, paths: Sequence[Path]) -> None:
        """Take files out whose new content belongs to another shard."""
        with self._open() as store:
            store.remove(paths)

    @contextmanager
    def _open(self) -> Iterator[LibraryStore]:
        """The shard's library, opened once, and again after storage did not answer, when nobody knows what it holds."""
        if self._opened is None:
            store = LibraryStore.open(bring_shard(self._place), create=False, wait=LOCK_SECONDS)
            store.lease_holder = self._holder
            given = self._settings
            store.options = replace(
                store.options,
                transcriber=given.transcriber,
                ocr_model=given.reader,
                sound_detector=given.sound_detector,
                second_pass=given.second_pass and store.options.second_pass,
                sampling=given.sampling or store.options.sampling,
                subtitles=given.subtitles,
            )
            self._opened = store
        try:
            yield self._opened
        except StoreUnreachableError:
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
