"""Adding videos: jobs, their progress, and what failed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from momentseek.api import Library
from momentseek.library.known_files import failed_files
from momentseek.server.answers import Body, text
from momentseek.server.errors import CHANGING, ApiError, documented
from momentseek.server.folders import folder_of
from momentseek.server.job_answers import FailedOut, JobOut, events, job_out
from momentseek.server.jobs import Job
from momentseek.server.service import Service, Serving

router = APIRouter(tags=["adding"])
JobId = Annotated[str, InPath(max_length=64, description="The job's id.")]


class JobsOut(BaseModel):
    """Jobs, the newest first."""

    jobs: list[JobOut]


class AddIn(Body):
    """What to add."""

    folder: Annotated[str, Field(max_length=64, description="An id from a list of folders.")]


class FailureOut(FailedOut):
    """A file that could not be added."""

    at: float = Field(description="When it was tried last, in seconds since 1970.")
    tries: int


class FailuresOut(BaseModel):
    """All files that could not be added."""

    failures: list[FailureOut]


@router.post("/jobs", status_code=202, summary="Add a folder", responses={**documented(404, 409), **CHANGING})
async def add(service: Serving, given: AddIn) -> JobOut:
    """Begin to add the videos in a folder; answers at once."""

    def enter(_: Library) -> Job:
        folder = folder_of(service.folders, given.folder)
        return service.jobs.add(folder.path, folder.name)

    return job_out(await service.listers.run(enter))


@router.post("/jobs/retry", status_code=202, summary="Try failures again", responses={**documented(409), **CHANGING})
async def retry(service: Serving) -> JobOut:
    """Begin to try again the files that could not be added."""
    return job_out(service.jobs.retry())


@router.get("/jobs", summary="List jobs")
async def jobs(service: Serving) -> JobsOut:
    """The jobs since the server was started."""
    return JobsOut(jobs=[job_out(job) for job in service.jobs.all()])


def _stream(description: str) -> dict[int | str, dict[str, Any]]:
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {200: {"description": description, "content": content}}


_ALL = _stream("States of all jobs, now and whenever one changes: `event: progress`, `done` or `failed`.")
_ONE = _stream("States of the job: `event: progress` while it runs, then `done` or `failed`, then the end.")


@router.get("/jobs/events", summary="Follow all jobs", responses=_ALL, response_class=StreamingResponse)
async def all_events(service: Serving) -> StreamingResponse:
    """The states of all jobs as server-sent events, each with a job as its data, on one connection that stays open."""
    return StreamingResponse(events(service.jobs), media_type="text/event-stream")


@router.get(
    "/jobs/{id}/events",
    summary="Follow a job",
    responses={**_ONE, **documented(404)},
    response_class=StreamingResponse,
)
async def job_events(service: Serving, id: JobId) -> StreamingResponse:
    """The job's states as server-sent events, each with the job as its data; ends when the job does."""
    _job(service, id)
    return StreamingResponse(events(service.jobs, id), media_type="text/event-stream")


@router.get("/jobs/{id}", summary="One job", responses=documented(404))
async def job(service: Serving, id: JobId) -> JobOut:
    """How far a job is."""
    return job_out(_job(service, id))


@router.post("/jobs/{id}/cancel", summary="Cancel a job", responses={**documented(404), **CHANGING})
async def cancel(service: Serving, id: JobId) -> JobOut:
    """Stop a job soon; what is done is kept, and adding the folder again goes on from there."""
    found = service.jobs.cancel(id)
    if found is None:
        raise _unknown()
    return job_out(found)


@router.get("/failures", summary="What failed")
async def failures(service: Serving) -> FailuresOut:
    """Files that could not be added, with reasons."""

    def read(library: Library) -> FailuresOut:
        with library.catalog.view():
            names = dict(failed_files(library.catalog))
            found = library.failures()
        return FailuresOut(
            failures=[
                FailureOut(name=text(names.get(f.path, f.path.name)), reason=text(f.reason), at=f.at, tries=f.tries)
                for f in found
            ]
        )

    return await service.readers.run(read)


def _job(service: Service, id: str) -> Job:
    found = service.jobs.get(id)
    if found is None:
        raise _unknown()
    return found


def _unknown() -> ApiError:
    return ApiError(404, "there is no such job; GET /api/v1/jobs lists them")
