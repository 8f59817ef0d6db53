"""ShardWriter: the only writer of a shard, on any node of the cluster, and the videos that it fetches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from momentseek.cluster.replicas.place import shard_folder
from momentseek.cluster.replicas.replica import update_shard
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
    """A remote video; its path is that of the copy that a node fetches."""

    address: str = ""
    remote: RemoteFile | None = None

    @property
    def stamp(self) -> Stamp:
        """The size and time by which a node recognises its copy as unchanged; the same on every node."""
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
    """Videos with the paths of their copies on this node; ``shard`` is the folder or address of a shard."""
    mirror = Mirror(sources_folder(shard_folder(shard).parent))
    return [
        RemoteVideo(mirror.path_of(file.remote), file.name, file.size, file.address, file.remote)
        if isinstance(file, RemoteVideo) and file.remote is not None
        else file
        for file in files
    ]


def ensure_videos(files: Sequence[VideoFile], shard: str) -> FoundFiles:
    """Fetch remote videos that have no copy on this node; those that cannot be fetched are unusable.

    Raises StoreUnreachableError if the storage does not answer, because that says nothing about a video.
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
"""How long a writer waits for the lock of a writer that has just died."""


@dataclass(frozen=True)
class WriterSettings:
    """Options of an ``add``, the same for every shard."""

    subtitles: Path | None = None
    transcriber: str | None = None
    reader: str | None = None
    sound_detector: str | None = None
    second_pass: bool = True
    sampling: Sampling | None = None
    """How frames are sampled; None for the setting of each node."""


class ShardWriter:
    """Adds videos to one shard; as an actor, it is restarted on another node if its own dies.

    A shard is committed video by video, so that nothing is added twice and no finished video is lost. All writers of
    one ``add`` have the same ``holder``, so that a restarted one need not wait until the lease of a dead one ends.
    """

    def __init__(self, place: str, settings: WriterSettings, holder: str | None = None) -> None:
        self._place, self._settings, self._holder = place, settings, holder
        self._opened: LibraryStore | None = None

    def add(self, files: Sequence[VideoFile]) -> AddReport:
        """Add videos; those that are in the shard and have not changed are not read."""
        with self._open() as store:
            return store.add_found(ensure_videos(files, self._place))

    def drop(self, paths: Sequence[Path]) -> None:
        """Remove files whose new content belongs to another shard."""
        with self._open() as store:
            store.remove(paths)

    @contextmanager
    def _open(self) -> Iterator[LibraryStore]:
        """The shard's library, opened once, and again if the storage did not answer, which leaves its state unknown."""
        if self._opened is None:
            store = LibraryStore.open(update_shard(self._place), create=False, wait=LOCK_SECONDS)
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
    """The state of each file in a shard, which is given by its folder or address.

    It is ``unchanged``, ``failed`` (before, and unchanged since), ``held`` (with other subtitles), ``changed``, or
    empty.
    """
    with closing(Catalog(update_shard(place))) as catalog:
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
