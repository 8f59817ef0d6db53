"""Adding videos: jobs, their progress, and what failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from momentseek.library.ledger import failed_names
from momentseek.search import Library
from momentseek.server.answers import Body, text
from momentseek.server.errors import CHANGING, ApiError, documented
from momentseek.server.jobs import Job, State
from momentseek.server.routes.folders import folder_of
from momentseek.server.service import Service, Serving

router = APIRouter(tags=["adding"])
JobId = Annotated[str, InPath(max_length=64, description="The job's id.")]
LOOK_EVERY = 0.2
ALIVE_EVERY = 15.0
"""Seconds after which a silent stream sends a comment, so that nobody takes it for dead."""


class FailedOut(BaseModel):
    """A file that could not be added, and why."""

    name: str
    reason: str


class JobOut(BaseModel):
    """A job as it stands."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "9f86d081884c7d65", "state": "running", "kind": "add", "folder": "Holiday", "files_done": 3,
                "files_total": 12, "file": "beach.mp4", "fraction": 0.31, "rate": 24.0, "seconds_left": 95.0,
                "added": 0, "unchanged": 0, "failed": [], "error": None, "started": 1760000000.0, "ended": None,
            }
        }
    )  # fmt: skip
    id: str
    state: State
    kind: Literal["add", "retry"]
    folder: str | None
    files_done: int
    files_total: int
    file: str = Field(description="The present one.")
    fraction: float = Field(description="Of the work, from 0 to 1.")
    rate: float | None = Field(description="Seconds of video per second.")
    seconds_left: float | None
    added: int = Field(description="New and changed videos; known at the end.")
    unchanged: int
    failed: list[FailedOut]
    error: str | None = Field(description="Why the job as a whole failed.")
    started: float | None
    ended: float | None


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

    return _out(await service.readers.run(enter))


@router.post("/jobs/retry", status_code=202, summary="Try failures again", responses={**documented(409), **CHANGING})
async def retry(service: Serving) -> JobOut:
    """Begin to try again the files that could not be added."""
    return _out(service.jobs.retry())


@router.get("/jobs", summary="List jobs")
async def jobs(service: Serving) -> JobsOut:
    """The jobs since the server was started."""
    return JobsOut(jobs=[_out(job) for job in service.jobs.all()])


@router.get("/jobs/{id}", summary="One job", responses=documented(404))
async def job(service: Serving, id: JobId) -> JobOut:
    """How far a job is."""
    return _out(_job(service, id))


@router.post("/jobs/{id}/cancel", summary="Cancel a job", responses={**documented(404), **CHANGING})
async def cancel(service: Serving, id: JobId) -> JobOut:
    """Stop a job soon; what is done is kept, and adding the folder again goes on from there."""
    found = service.jobs.cancel(id)
    if found is None:
        raise _unknown()
    return _out(found)


_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "States of the job: `event: progress` while it runs, then `done` or `failed`, then the end.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    **documented(404),
}


@router.get("/jobs/{id}/events", summary="Follow a job", responses=_EVENTS, response_class=StreamingResponse)
async def events(service: Serving, id: JobId) -> StreamingResponse:
    """The job's states as server-sent events, each with the job as its data; ends when the job does."""
    first = _job(service, id)
    return StreamingResponse(_states(service, first), media_type="text/event-stream")


async def _states(service: Service, job: Job) -> AsyncIterator[str]:
    yield _event(job)
    silent = 0.0
    while not job.over:
        await asyncio.sleep(LOOK_EVERY)
        silent += LOOK_EVERY
        new = service.jobs.get(job.id)
        if new is None:
            return
        if new != job:
            job, silent = new, 0.0
            yield _event(job)
        elif silent >= ALIVE_EVERY:
            silent = 0.0
            yield ": still here\n\n"
        elif service.jobs.stopping.is_set() and job.state == "waiting":
            return


def _event(job: Job) -> str:
    name = {"done": "done", "failed": "failed", "cancelled": "done"}.get(job.state, "progress")
    return f"event: {name}\ndata: {_out(job).model_dump_json()}\n\n"


@router.get("/failures", summary="What failed")
async def failures(service: Serving) -> FailuresOut:
    """Files that could not be added, with reasons."""

    def read(library: Library) -> FailuresOut:
        with library.catalog.view():
            names = dict(failed_names(library.catalog))
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


def _out(job: Job) -> JobOut:
    return JobOut(
        **{name: getattr(job, name) for name in JobOut.model_fields if name != "failed"},
        failed=[FailedOut(name=name, reason=reason) for name, reason in job.failed],
    )
