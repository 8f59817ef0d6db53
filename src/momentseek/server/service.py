"""Service: what the routes of one server share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from momentseek.api.library import Library
from momentseek.cluster.shard_client import ShardClient
from momentseek.library.paths import LibraryPaths
from momentseek.library.video import Video
from momentseek.server.database import DatabaseLocation
from momentseek.server.errors import ApiError
from momentseek.server.folders import FolderIds
from momentseek.server.jobs import Jobs
from momentseek.server.previews import Previews
from momentseek.server.search_processes import SearchProcess, SearchProcesses
from momentseek.server.security.sessions import Sessions, open_sessions
from momentseek.server.security.users import Users
from momentseek.server.settings import ServerSettings
from momentseek.server.workers import ComparisonLibraries, LibraryWorkers


@dataclass(eq=False)
class EventStream:
    """A stream of events to a client; its sender stops once it is ``ended``."""

    client: str
    ended: bool = False


class EventStreams:
    """The open streams. A new one is never refused: if there are too many, an older one is ended.

    That is the oldest stream of the same client, or, if all clients together have too many, the oldest of the client
    that has the most.

    >>> streams = EventStreams(3, per_client=2)
    >>> a, b, c, d = (streams.begin(client) for client in "aaab")
    >>> [stream.ended for stream in (a, b, c, d)]
    [True, False, False, False]
    >>> e = streams.begin("c")
    >>> [stream.ended for stream in (b, c, d, e)]
    [True, False, False, False]
    """

    def __init__(self, limit: int, per_client: int) -> None:
        self.limit, self.per_client = limit, per_client
        self._open: dict[EventStream, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, client: str) -> EventStream:
        """Begin a stream to a client; this may end an older one."""
        counts = Counter(stream.client for stream in self._open)
        if counts[client] >= self.per_client:
            self._end_oldest(client)
        elif len(self._open) >= self.limit:
            self._end_oldest(counts.most_common(1)[0][0])
        stream = EventStream(client)
        self._open[stream] = None
        return stream

    def end(self, stream: EventStream) -> None:
        """End a stream, unless it has ended already."""
        stream.ended = True
        self._open.pop(stream, None)

    @contextmanager
    def open(self, client: str) -> Iterator[EventStream]:
        """A stream to a client, open for a ``with`` block."""
        stream = self.begin(client)
        try:
            yield stream
        finally:
            self.end(stream)

    def _end_oldest(self, client: str) -> None:
        self.end(next(stream for stream in self._open if stream.client == client))


class Service:
    """A library being served: threads that read it, jobs that add to it, folders it may grow from, open sessions."""

    def __init__(self, library: Path, settings: ServerSettings, shard_client: ShardClient | None = None) -> None:
        self.library, self.settings = library, settings
        self.shard_client = shard_client
        """Reaches shards of the library outside this process."""
        limits = settings.limits
        self.readers = LibraryWorkers(library, "read", limits.reads, limits.waiting, limits.seconds)
        """Threads for quick reads of the catalog."""
        self.searchers = LibraryWorkers(
            library, "search", limits.searches, limits.waiting, limits.seconds, shard_client
        )
        processes = [SearchProcess(library, limits.seconds) for _ in range(settings.search_processes)]
        self.search_processes = SearchProcesses(processes, limits, settings.rerankers) if processes else None
        """Processes that search instead of these threads, or None."""
        self.pictures = LibraryWorkers(library, "picture", limits.pictures, limits.waiting, limits.seconds)
        self.cutters = LibraryWorkers(library, "cut", 1, limits.jobs, limits.cut_seconds)
        self.listers = LibraryWorkers(library, "folder", limits.listings, limits.jobs, limits.seconds)
        """Threads that list folders, which may be huge or on a slow drive."""
        self.comparisons = ComparisonLibraries(library, settings.compare_with, limits)
        self.jobs = Jobs(library, limits.jobs, lambda: self.searching)
        self.previews = Previews(LibraryPaths(library).previews, limits.previews, limits.jobs, limits.preview_bytes)
        self.database = DatabaseLocation(library, settings.database)
        """Where judgements, bookmarks and shared sessions are."""
        self.sessions = Sessions(settings, open_sessions(self.database), Users(self.database))
        self.roots = tuple(folder.resolve() for folder in settings.folders)
        """Folders from which videos may be added, with links resolved when the server started."""
        self.folders = FolderIds()
        self.event_streams = EventStreams(limits.event_streams, limits.event_streams_per_client)
        self.streams: Counter[str] = Counter()
        """Number of videos that are being sent now, by client."""

    @property
    def searching(self) -> bool:
        """Whether any search runs or waits."""
        processes = self.search_processes
        return self.searchers.busy or (processes is not None and processes.busy)

    def check_changes(self) -> None:
        """Answer 403 unless this server allows clients to make changes."""
        if not self.settings.changes:
            raise ApiError(403, "this server does not allow changes; start it with momentseek serve --changes")

    async def video(self, id: int) -> Video:
        """The video with an id; 404 if there is none."""
        return await self.readers.run(lambda library: find_video(library, id))

    def close(self) -> None:
        """Finish what is being written, then close everything."""
        self.jobs.close()
        self.previews.close()
        if self.search_processes is not None:
            self.search_processes.close()
        for workers in (self.readers, self.searchers, self.pictures, self.cutters, self.listers, self.comparisons):
            workers.close()
        self.database.close()


def find_video(library: Library, id: int) -> Video:
    """The video with an id; 404 if there is none."""
    found = library.store.catalog.videos([id])
    if not found:
        raise ApiError(404, f"there is no video {id}; it may have been removed or changed since")
    return found[0]


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceParam = Annotated[Service, Depends(_service)]
"""The type of a route's parameter that receives the service."""
