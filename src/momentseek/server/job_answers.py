"""Jobs as the API shows them, and as a stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from momentseek.server.jobs import Job, Jobs, State

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


def job_out(job: Job) -> JobOut:
    """A job as the API shows it."""
    return JobOut(
        **{name: getattr(job, name) for name in JobOut.model_fields if name != "failed"},
        failed=[FailedOut(name=name, reason=reason) for name, reason in job.failed],
    )


async def events(jobs: Jobs, id: str | None = None) -> AsyncIterator[str]:
    """Server-sent events: the state of every job now, and again whenever one changes.

    Of one job (``id``) they end when it does; of all, when the server stops and nothing runs any more.
    """
    told: dict[str, Job] = {}
    silent = 0.0
    while True:
        now = [job for job in reversed(jobs.all()) if id is None or job.id == id]
        for job in now:
            if told.get(job.id) != job:
                silent = 0.0
                yield event(job)
        told = {job.id: job for job in now}
        over = all(job.over or (jobs.stopping.is_set() and job.state == "waiting") for job in now)
        if over and (id is not None or jobs.stopping.is_set()):
            return
        await asyncio.sleep(LOOK_EVERY)
        silent += LOOK_EVERY
        if silent >= ALIVE_EVERY:
            silent = 0.0
            yield ": still here\n\n"


def event(job: Job) -> str:
    """One state: ``progress`` while it goes on, then ``done`` or ``failed``."""
    name = {"done": "done", "failed": "failed", "cancelled": "done"}.get(job.state, "progress")
    return f"event: {name}\ndata: {job_out(job).model_dump_json()}\n\n"
