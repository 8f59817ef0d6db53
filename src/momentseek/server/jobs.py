"""Jobs: adding a folder, or trying again what failed, one after another in a thread of their own."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from momentseek.api import Library
from momentseek.errors import MomentseekError
from momentseek.library import AddInterrupted, AddReport
from momentseek.library.ingest.report import IngestNote, IngestStep
from momentseek.library.stamp import path_text
from momentseek.server.errors import ApiError, nameless

State = Literal["waiting", "running", "done", "failed", "cancelled"]
KEPT = 100
"""Ended jobs that are remembered."""
LOCK_SECONDS = 5.0
"""How long a job waits for another process that is changing the library."""


class Stop(KeyboardInterrupt):
    """Ends an ``add`` as Ctrl-C does: what is whole is written."""


@dataclass(frozen=True)
class Job:
    """A job as it stands; it is replaced, never changed, so that anybody may hold one."""

    id: str
    kind: Literal["add", "retry"]
    folder: str | None
    """The folder's name."""
    state: State = "waiting"
    files_done: int = 0
    files_total: int = 0
    file: str = ""
    fraction: float = 0.0
    rate: float | None = None
    """Seconds of video per second."""
    seconds_left: float | None = None
    added: int = 0
    unchanged: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    """Name and reason."""
    error: str | None = None
    """Why the job as a whole failed."""
    started: float | None = None
    ended: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more will change."""
        return self.state in ("done", "failed", "cancelled")


@dataclass(eq=False)
class _Order:
    """What the thread needs to know of a job."""

    id: str
    path: Path | None
    stop: threading.Event = field(default_factory=threading.Event)


class Jobs:
    """All jobs of this server. One runs at a time: a library has one writer."""

    def __init__(self, library: Path, waiting: int = 20) -> None:
        self._library = library
        self._waiting = waiting
        self._jobs: dict[str, Job] = {}
        self._orders: dict[str, _Order] = {}
        self._queue: queue.Queue[_Order | None] = queue.Queue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.stopping = threading.Event()

    def add(self, path: Path, name: str) -> Job:
        """Add a folder; refused while the same one is being added already."""
        return self._enter("add", path, name)

    def retry(self) -> Job:
        """Try again what failed."""
        return self._enter("retry", None, None)

    def all(self) -> list[Job]:
        """The newest first."""
        with self._lock:
            return list(reversed(self._jobs.values()))

    def get(self, id: str) -> Job | None:
        """A job as it stands now."""
        with self._lock:
            return self._jobs.get(id)

    def cancel(self, id: str) -> Job | None:
        """Stop a job; what it has done is kept. One that is over stays as it is."""
        with self._lock:
            job = self._jobs.get(id)
            if job is None or job.over:
                return job
            self._orders[id].stop.set()
            if job.state == "waiting":
                job = self._jobs[id] = replace(job, state="cancelled", ended=time.time())
            return job

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits."""
        with self._lock:
            return any(not job.over for job in self._jobs.values())

    def stop_soon(self) -> None:
        """Take no more jobs and end the one that runs; safe to call from a signal handler's thread."""
        self.stopping.set()
        for order in list(self._orders.values()):
            order.stop.set()

    def close(self) -> None:
        """Stop, and wait until everything whole is written."""
        self.stop_soon()
        for job in self.all():
            if job.state == "waiting":
                self.cancel(job.id)
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _enter(self, kind: Literal["add", "retry"], path: Path | None, name: str | None) -> Job:
        with self._lock:
            if self.stopping.is_set():
                raise ApiError(503, "the server is stopping; try again when it is back", headers={"Retry-After": "5"})
            open = [id for id, job in self._jobs.items() if not job.over]
            if any(self._jobs[id].kind == kind and self._orders[id].path == path for id in open):
                raise ApiError(409, "this is being done already; GET /api/v1/jobs shows how far it is")
            if len(open) > self._waiting:
                raise ApiError(503, "too many jobs wait; try again when some are done", headers={"Retry-After": "60"})
            job = Job(secrets.token_hex(8), kind, name)
            self._jobs[job.id] = job
            order = self._orders[job.id] = _Order(job.id, path)
            self._forget()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
                self._thread.start()
        self._queue.put(order)
        return job

    def _forget(self) -> None:
        over = [id for id, job in self._jobs.items() if job.over]
        for id in over[: max(0, len(over) - KEPT)]:
            del self._jobs[id], self._orders[id]

    def _change(self, id: str, change: Callable[[Job], Job]) -> None:
        with self._lock:
            self._jobs[id] = change(self._jobs[id])

    def _work(self) -> None:
        while (order := self._queue.get()) is not None:
            job = self.get(order.id)
            if job is not None and job.state == "waiting":
                self._run(order, job)

    def _run(self, order: _Order, job: Job) -> None:
        self._change(job.id, lambda j: replace(j, state="running", started=time.time()))

        def progress(event: IngestStep | IngestNote) -> None:
            if isinstance(event, IngestNote):
                if event.kind in ("failed", "odd"):
                    self._change(job.id, lambda j: replace(j, failed=(*j.failed, _failure(event))))
                return
            self._change(job.id, lambda j: _stepped(j, event))
            if order.stop.is_set():
                raise Stop

        state: State = "failed"
        report: AddReport | None = None
        error: str | None = None
        try:
            with Library.open(self._library, create=False, wait=LOCK_SECONDS) as library:
                if order.stop.is_set():
                    raise Stop
                report = (
                    library.retry(progress=progress)
                    if order.path is None
                    else library.add(order.path, progress=progress)
                )
            state = "done"
        except AddInterrupted as e:
            state, report = "cancelled", e.report
        except KeyboardInterrupt:
            state = "cancelled"
        except MomentseekError as e:
            error = nameless(str(e).replace(str(self._library), self._library.name))
        except Exception as e:  # one bad job must not end the thread
            error = f"a fault in the server ({type(e).__name__}); please report it"
        self._change(job.id, lambda j: _ended(j, state, report, error))


def _stepped(job: Job, step: IngestStep) -> Job:
    rate = left = None
    if step.encoding > 0 and step.bytes_encoded:
        rate = step.seconds / step.encoding
        left = max(0.0, (step.of_bytes - step.bytes) * step.encoding / step.bytes_encoded)
    return replace(
        job,
        files_done=step.files,
        files_total=step.of_files,
        file=path_text(step.name),
        fraction=min(1.0, step.bytes / step.of_bytes) if step.of_bytes else 1.0,
        rate=rate,
        seconds_left=left,
    )


def _failure(note: IngestNote) -> tuple[str, str]:
    name, _, reason = note.text.partition(": ")
    return (
        (path_text(name.rsplit("/", 1)[-1]), nameless(path_text(reason)))
        if reason
        else ("", nameless(path_text(note.text)))
    )


def _ended(job: Job, state: State, report: AddReport | None, error: str | None) -> Job:
    if report is not None:
        job = replace(
            job,
            added=report.added + report.changed + report.copied,
            unchanged=report.unchanged + report.moved + report.refreshed,
            failed=tuple((path_text(f.path.name), nameless(path_text(f.reason))) for f in report.failed),
        )
    if state == "done":
        job = replace(job, fraction=1.0, seconds_left=0.0, files_done=job.files_total)
    return replace(job, state=state, error=error, ended=time.time())
