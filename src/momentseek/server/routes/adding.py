"""Routes to add videos: folders to choose from, jobs, streams of their progress, and failed files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Path as InPath
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from momentseek.api.library import Library
from momentseek.library.file_stamp import path_text
from momentseek.library.known_files import failed_files
from momentseek.server.errors import ApiError, change_errors, error_responses, hide_paths
from momentseek.server.folders import (
    DRIVE_PLACES,
    MAX_LISTED_FOLDERS,
    ListedFolder,
    ListingBudget,
    count_videos_each,
    find_folder,
    home_folders,
    is_folder,
    list_folder,
    root_folders,
)
from momentseek.server.jobs import FailedFileOut, JobOut, Jobs
from momentseek.server.schemas import StrictBody, clean_text, example
from momentseek.server.security.sessions import client_of
from momentseek.server.service import Service, ServiceParam

router = APIRouter(tags=["adding"])
POLL_SECONDS = 0.2
"""How often an event stream looks for changes."""
KEEPALIVE_SECONDS = 15.0
"""After this time without an event a stream sends a comment, so that nobody takes the connection for dead."""
RETRY_MILLISECONDS = 60_000
"""How long a client should wait before it reconnects, after its stream was ended for a newer one."""
JobId = Annotated[str, InPath(max_length=64, description="The job's id.")]
FolderId = Annotated[str, InPath(max_length=64, description="An id from a list of folders.")]


class JobsOut(BaseModel):
    """All jobs, newest first."""

    jobs: list[JobOut]


class AddIn(StrictBody):
    """The folder to add."""

    folder: Annotated[str, Field(max_length=64, description="An id from a list of folders.")]


class FailureOut(FailedFileOut):
    """A file that could not be added, and when it was last tried."""

    at: float = Field(description="When it was last tried, in seconds since 1970.")
    tries: int = Field(description="Number of attempts.")


class FailuresOut(BaseModel):
    """All files that could not be added."""

    failures: list[FailureOut]


async def stream_events(
    jobs: Jobs, id: str | None = None, ended: Callable[[], bool] = lambda: False
) -> AsyncIterator[str]:
    """Server-sent events with the state of every job, or of the job ``id``, now and whenever it changes.

    The events of one job end with it; those of all jobs end when the server stops and nothing is running any more. Both
    end early when ``ended`` returns true; the client is then told to wait before it reconnects.
    """
    sent: dict[str, JobOut] = {}
    silent = 0.0
    while True:
        now = [job for job in reversed(jobs.all()) if id is None or job.id == id]
        for job in now:
            if sent.get(job.id) != job:
                silent = 0.0
                yield event_text(job)
        sent = {job.id: job for job in now}
        over = all(job.over or (jobs.stopping.is_set() and job.state == "waiting") for job in now)
        if over and (id is not None or jobs.stopping.is_set()):
            return
        await asyncio.sleep(POLL_SECONDS)
        if ended():
            yield f"retry: {RETRY_MILLISECONDS}\n\n"
            return
        silent += POLL_SECONDS
        if silent >= KEEPALIVE_SECONDS:
            silent = 0.0
            yield ": still here\n\n"


def event_text(job: JobOut) -> str:
    """The state of a job as a server-sent event: ``progress`` while it runs, then ``done`` or ``failed``."""
    name = {"done": "done", "failed": "failed", "cancelled": "done"}.get(job.state, "progress")
    return f"event: {name}\ndata: {job.model_dump_json()}\n\n"


@router.post("/jobs", status_code=202, summary="Add a folder", responses=change_errors(404, 409))
async def add(service: ServiceParam, given: AddIn) -> JobOut:
    """Start a job that adds the videos in a folder; answers at once."""

    def submit(_: Library) -> JobOut:
        folder = find_folder(service.folders, given.folder)
        return service.jobs.add(folder.path, folder.name)

    return await service.listers.run(submit)


@router.post("/jobs/retry", status_code=202, summary="Retry failures", responses=change_errors(409))
async def retry(service: ServiceParam) -> JobOut:
    """Start a job that tries the failed files again; answers at once."""
    return service.jobs.retry()


@router.get("/jobs", summary="List jobs")
async def jobs(service: ServiceParam) -> JobsOut:
    """The jobs since the server started, newest first."""
    return JobsOut(jobs=service.jobs.all())


def _stream_responses(description: str) -> dict[int | str, dict[str, Any]]:
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {200: {"description": description, "content": content}}


_ALL_JOBS_STREAM = _stream_responses(
    "The states of all jobs, now and whenever one changes: `event: progress`, `done` or `failed`."
)
_ONE_JOB_STREAM = _stream_responses(
    "The states of the job: `event: progress` while it runs, then `done` or `failed`, then the end."
)


@router.get("/jobs/events", summary="Follow all jobs", responses=_ALL_JOBS_STREAM, response_class=StreamingResponse)
async def all_events(request: Request, service: ServiceParam) -> StreamingResponse:
    """The states of all jobs as server-sent events, each with a job as its data; the connection stays open."""
    return _event_response(service, request)


@router.get(
    "/jobs/{id}/events",
    summary="Follow a job",
    responses={**_ONE_JOB_STREAM, **error_responses(404)},
    response_class=StreamingResponse,
)
async def job_events(request: Request, service: ServiceParam, id: JobId) -> StreamingResponse:
    """The job's states as server-sent events, each with the job as its data; ends when the job does."""
    _check_found(service.jobs.get(id))
    return _event_response(service, request, id)


def _event_response(service: Service, request: Request, id: str | None = None) -> StreamingResponse:
    """Stream the events. The stream is counted from its first event, so that one that never begins does not count."""

    async def events() -> AsyncIterator[str]:
        with service.event_streams.open(client_of(request.scope)) as stream:
            async for text in stream_events(service.jobs, id, lambda: stream.ended):
                yield text

    return StreamingResponse(events(), media_type="text/event-stream", headers={"Connection": "close"})


@router.get("/jobs/{id}", summary="One job", responses=error_responses(404))
async def job(service: ServiceParam, id: JobId) -> JobOut:
    """The state of a job."""
    return _check_found(service.jobs.get(id))


@router.post("/jobs/{id}/cancel", summary="Cancel a job", responses=change_errors(404))
async def cancel(service: ServiceParam, id: JobId) -> JobOut:
    """Stop a job soon. Finished videos are kept, and adding the folder again continues from there."""
    return _check_found(service.jobs.cancel(id))


@router.get("/failures", summary="List failures")
async def failures(service: ServiceParam) -> FailuresOut:
    """The files that could not be added, with the reasons."""

    def read(library: Library) -> FailuresOut:
        with library.store.catalog.view():
            names = dict(pair for part in library.store.catalog.parts for pair in failed_files(part))
            found = library.store.failures()
        return FailuresOut(
            failures=[
                FailureOut(
                    name=clean_text(names.get(f.path, f.path.name)),
                    reason=hide_paths(clean_text(f.reason)),
                    at=f.at,
                    tries=f.tries,
                )
                for f in found
            ]
        )

    return await service.readers.run(read)


def _check_found(job: JobOut | None) -> JobOut:
    if job is None:
        raise ApiError(404, "there is no such job; GET /api/v1/jobs lists them")
    return job


class FolderOut(BaseModel):
    """A folder with the number of its videos."""

    model_config = example({"id": "5b1c09d2c0ffee42", "name": "Holiday", "videos": 12, "complete": True})
    id: str = Field(description="An opaque id, which contains no path.")
    name: str
    videos: int = Field(description="Number of files that look like videos, in it and in its subfolders.")
    complete: bool = Field(description="Whether all were counted; if not, there may be more.")


class FoldersOut(BaseModel):
    """A list of folders."""

    folders: list[FolderOut]


class FolderDetailsOut(FolderOut):
    """A folder with its parent and its subfolders."""

    parent: str | None = Field(description="The id of the folder above; null at the top.")
    folders: list[FolderOut]
    more: bool = Field(description="Whether it has more folders than are listed.")


@router.get("/folders", summary="Top folders")
async def folders(service: ServiceParam) -> FoldersOut:
    """The folders that the server was started with, or else those of the videos in the library.

    Where changes are allowed and no folder was named, the home folder and connected drives are among them.
    """

    def read(library: Library) -> FoldersOut:
        roots = list(service.roots) or root_folders(video.path for video in library.videos())
        if not service.roots and service.settings.changes:
            roots += [folder for folder in home_folders() if folder not in roots]
        listed = [service.folders.mint(root, root) for root in roots if is_folder(root)]
        counted = _count_videos(listed, _listing_budget(service))
        offered = set() if service.roots else set(map(path_text, DRIVE_PLACES))  # drives without videos are not offered
        return FoldersOut(
            folders=[
                one
                for one, folder in zip(counted, listed, strict=True)
                if one.videos or not one.complete or path_text(folder.path.parent) not in offered
            ]
        )

    return await service.listers.run(read)


@router.get("/folders/{id}", summary="One folder", responses=error_responses(404))
async def folder(service: ServiceParam, id: FolderId) -> FolderDetailsOut:
    """A folder and its subfolders."""

    def read(_: Library) -> FolderDetailsOut:
        budget = _listing_budget(service)
        found = find_folder(service.folders, id)
        above = service.folders.parent(found)
        here = list_folder(found.path, budget)
        below = _count_videos(
            service.folders.below(found, here.folders[:MAX_LISTED_FOLDERS]), budget.less(here.examined)
        )
        whole = here.complete and len(here.folders) <= MAX_LISTED_FOLDERS
        return FolderDetailsOut(
            id=found.id,
            name=found.name,
            videos=here.videos + sum(one.videos for one in below),
            complete=whole and all(one.complete for one in below),
            parent=above.id if above else None,
            folders=below,
            more=not whole,
        )

    return await service.listers.run(read)


def _listing_budget(service: Service) -> ListingBudget:
    return ListingBudget.of(service.settings.limits.listing_entries, service.settings.limits.listing_seconds)


def _count_videos(folders: Sequence[ListedFolder], budget: ListingBudget) -> list[FolderOut]:
    counts = count_videos_each([one.path for one in folders], budget)
    return [
        FolderOut(id=one.id, name=one.name, videos=many.videos, complete=many.complete)
        for one, many in zip(folders, counts, strict=True)
    ]
