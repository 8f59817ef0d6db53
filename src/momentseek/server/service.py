"""What the routes of one server share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from momentseek.api import Library
from momentseek.library.video import Video
from momentseek.server.beside import Beside
from momentseek.server.errors import ApiError
from momentseek.server.folders import Folders
from momentseek.server.jobs import Jobs
from momentseek.server.security.tokens import Keys
from momentseek.server.settings import Settings
from momentseek.server.workers import Workers


@dataclass(eq=False)
class Service:
    """A library being served: threads that read it, jobs that change it, folders it may grow from."""

    library: Path
    settings: Settings
    readers: Workers
    """For what the catalog knows: quick."""
    searchers: Workers
    pictures: Workers
    cutters: Workers
    listers: Workers
    """For folders, which may be huge or on a slow drive."""
    beside: Beside
    jobs: Jobs
    keys: Keys
    folders: Folders = field(default_factory=Folders)
    streams: int = 0
    """Videos being sent now."""

    @classmethod
    def of(cls, library: Path, settings: Settings) -> Service:
        """With the threads that the limits allow."""
        most = settings.limits
        return cls(
            library,
            settings,
            Workers(library, "read", most.reads, most.waiting, most.seconds),
            Workers(library, "search", most.searches, most.waiting, most.seconds),
            Workers(library, "picture", most.pictures, most.waiting, most.seconds),
            Workers(library, "cut", 1, most.jobs, most.cut_seconds),
            Workers(library, "folder", most.listings, most.jobs, most.seconds),
            Beside(library, settings.beside, most),
            Jobs(library, most.jobs),
            Keys(settings),
        )

    async def video(self, id: int) -> Video:
        """A video by its id; 404 if there is none."""
        return await self.readers.run(lambda library: video_of(library, id))

    def close(self) -> None:
        """Finish what is being written, then let go of everything."""
        self.jobs.close()
        for workers in (self.readers, self.searchers, self.pictures, self.cutters, self.listers, self.beside):
            workers.close()


def video_of(library: Library, id: int) -> Video:
    """A video by its id; 404 if there is none."""
    found = library.catalog.videos([id])
    if not found:
        raise ApiError(404, f"there is no video {id}; it may have been removed or changed since")
    return found[0]


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Serving = Annotated[Service, Depends(_service)]
"""A route's parameter that is the service."""
