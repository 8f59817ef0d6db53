"""Videos in object storage, fetched by the node that needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.library.file_stamp import Stamp
from momentseek.library.files import VIDEO_SUFFIXES, FoundFiles, VideoFile
from momentseek.library.location import sources_folder
from momentseek.library.replicas.place import shard_folder
from momentseek.storage.address import UnreachableError
from momentseek.storage.mirror import Mirror, RemoteFile, list_files


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
    """The videos at an address, to be fetched beside the replica of a library in object storage."""
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

    Storage that does not answer says nothing of a video: UnreachableError.
    """
    mirror = Mirror(sources_folder(shard_folder(shard).parent))
    found = FoundFiles()
    for file in local_videos(files, shard):
        try:
            if isinstance(file, RemoteVideo) and file.remote is not None:
                mirror.fetch(file.address, file.remote)
            found.files.append(VideoFile(file.path, file.name, file.size))
        except UnreachableError:
            raise
        except MomentseekError as e:
            found.unusable.append((file.path, str(e)))
    return found
