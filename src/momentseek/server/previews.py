"""Previews of videos that browsers cannot play: made on request, and cached up to a number of bytes.

Clients poll until a preview is ready; when nobody has asked for it for a while, the work is dropped. Clients that wait
for the same video share one preview, and only a few previews are made at a time.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from momentseek.cluster.replicas.place import source_file
from momentseek.core.errors import MomentseekError
from momentseek.library.video import Video
from momentseek.media.sandbox.calls import preview
from momentseek.server.errors import ApiError

LEASE_SECONDS = 10.0
"""A preview is dropped when no client has asked for it for this time; pages ask every second."""
FAILURE_SECONDS = 60.0
"""How long after a failure the video is not tried again."""
PREVIEW_VERSION = 1
"""Part of the files' names, so that previews of an older format are not used."""
PreviewState = Literal["ready", "waiting", "making", "failed"]


@dataclass
class PreviewJob:
    """A preview that was requested, and its state."""

    state: PreviewState = "waiting"
    progress: float = 0.0
    error: str = ""
    until: float = field(default_factory=lambda: time.monotonic() + LEASE_SECONDS)
    """The time until which it is wanted, or until which its failure is remembered."""


class Previews:
    """Makes and keeps the previews of one library."""

    def __init__(self, folder: Path, at_once: int, waiting: int, max_bytes: int) -> None:
        self.folder, self.max_bytes = folder, max_bytes
        self._max_jobs = at_once + waiting
        self._executor = ThreadPoolExecutor(at_once, thread_name_prefix="preview")
        self._jobs: dict[Path, PreviewJob] = {}
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, video: Video) -> PreviewJob:
        """The state of a video's preview; starts to make it if necessary, and keeps the work going."""
        path, now = self._path(video), time.monotonic()
        with self._lock:
            self._jobs = {p: j for p, j in self._jobs.items() if j.state != "failed" or j.until > now}
            job = self._jobs.get(path)
            if job is not None:
                if job.state != "failed":
                    job.until = now + LEASE_SECONDS
                return job
            if path.is_file():
                return PreviewJob("ready", 1.0)
            if sum(job.state != "failed" for job in self._jobs.values()) >= self._max_jobs:
                raise ApiError(503, "too many previews are wanted; try again later", headers={"Retry-After": "10"})
            job = self._jobs[path] = PreviewJob()
            try:
                self._executor.submit(self._work, video, path, job)
            except RuntimeError:
                del self._jobs[path]
                raise ApiError(503, "the server is stopping; try again when it is back") from None
            return job

    def find(self, video: Video) -> Path | None:
        """The file of a finished preview, or None; marks it as used now."""
        path = self._path(video)
        try:
            os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
        except OSError:
            return None
        return path

    def close(self) -> None:
        """Cancel the previews that are being made, and wait until they have stopped."""
        self._closed = True
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _path(self, video: Video) -> Path:
        return self.folder / f"{video.id}-{video.hash[:16]}-{PREVIEW_VERSION}.mp4"

    def _work(self, video: Video, path: Path, job: PreviewJob) -> None:
        error = ""
        try:
            self._make(video, path, job)
        except MomentseekError as e:
            error = str(e)
        except OSError as e:
            error = f"the preview cannot be written ({e.strerror or e}); make room on the disk"
        except Exception as e:
            error = f"the preview cannot be created ({type(e).__name__}); download the video instead"
        with self._lock:
            if error:
                job.state, job.error, job.until = "failed", error, time.monotonic() + FAILURE_SECONDS
            else:
                self._jobs.pop(path, None)

    def _make(self, video: Video, path: Path, job: PreviewJob) -> None:
        """Make a preview under a temporary name; stops when nobody wants it any more."""

        if not self._is_wanted(job):
            return
        job.state = "making"
        self.folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".making-") as room:
            made = Path(room) / "preview.mp4"
            with closing(preview(source_file(video), made)) as steps:
                for share in steps:
                    job.progress = share
                    if not self._is_wanted(job):
                        return
                    if made.exists() and made.stat().st_size > self.max_bytes:
                        raise MomentseekError("the video is too long for a preview; download it instead")
            made.replace(path)
        job.progress = 1.0
        self._trim(keep=path)

    def _is_wanted(self, job: PreviewJob) -> bool:
        return not self._closed and time.monotonic() < job.until

    def _trim(self, keep: Path) -> None:
        """Delete the least recently used previews until the rest fit into the limit."""
        files = []
        for path in self.folder.glob("*.mp4"):
            with suppress(OSError):
                state = path.stat()
                files.append((path != keep, -state.st_atime_ns, path, state.st_size))
        total = sum(size for *_, size in files)
        for other, _, path, size in sorted(files, reverse=True):
            if total <= self.max_bytes or not other:
                break
            with suppress(OSError):
                path.unlink()
            total -= size
