"""BackgroundPass: work on videos (transcription, OCR, captions) in a process and a thread of its own.

The thread asks the process for one video after the other; what comes back is written by the thread that holds the
library's lock (``poll``), part by part, so that a kill costs the part that was being worked on.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Generic, Self, TypeVar

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.library.file_stamp import Stamp, printable
from momentseek.library.ingest.report import (
    AddInterrupted,
    AddReport,
    BackgroundStep,
    IngestNote,
    ShowIngest,
    VideoNote,
)
from momentseek.library.reader import LibraryReader
from momentseek.library.video import PendingVideo

POLL_SECONDS = 0.2
V = TypeVar("V", bound=PendingVideo)
P = TypeVar("P")


@dataclass(frozen=True)
class _Answer(Generic[V, P]):
    """What came back of one video: a part, its end, or why it failed."""

    video: V
    part: P | None = None
    failed: str | None = None
    fault: MomentseekError | None = None
    """What is wrong with the process itself: nothing more can be done."""


class BackgroundPass(ABC, Generic[V, P]):
    """Works through the videos of a library that wait for it. The caller holds the library's lock."""

    WHAT: str
    """What it does, as ``hearing``."""
    UNDONE: str
    """What was not done if the process itself is at fault, as ``what is said was not heard``."""
    UNDONE_IN_VIDEO: str
    """The same of one video."""

    def __init__(
        self,
        library: LibraryReader,
        report: AddReport,
        progress: ShowIngest | None = None,
        *,
        only: Callable[[V], bool] = lambda _: True,
    ) -> None:
        self.library, self.report, self.show, self.only = library, report, progress or (lambda _: None), only
        self._jobs: SimpleQueue[V | None] = SimpleQueue()
        self._answers: SimpleQueue[_Answer[V, P]] = SimpleQueue()
        self._thread: Thread | None = None
        self._asked: dict[int, V] = {}
        self._open: dict[int, V] = {}
        self._at: dict[int, float] = {}
        self._begun = time.monotonic()
        self.fault: MomentseekError | None = None
        """What is wrong with the process itself, once that is known: nothing more is done."""

    # what a kind of work says about itself

    @abstractmethod
    def pending(self) -> list[V]:
        """The videos that wait, in the order in which they are to be done."""

    @abstractmethod
    def work(self, video: V) -> Iterator[P]:
        """Do one video, part by part; runs in the thread, and must not touch the library."""

    @abstractmethod
    def close_process(self) -> None:
        """End the process, whatever it is doing."""

    @abstractmethod
    def keep(self, video: V, part: P) -> float:
        """Store a part, inside ``changes()``; returns the seconds of the video that are done with it."""

    @abstractmethod
    def note_failure(self, video: V, reason: str) -> None:
        """Store that a video cannot be done, inside ``changes()``."""

    @abstractmethod
    def finish_video(self, video: V) -> None:
        """Make what was stored of a video count, since it is whole."""

    def finish_run(self) -> None:
        """What is left to do once all videos are done."""

    # running

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_process()
        self._jobs.put(None)

    @property
    def is_open(self) -> bool:
        """Whether videos wait that can still be done."""
        return bool(self._open) and self.fault is None

    def refill(self) -> None:
        """Ask for the videos that have become part of the library since the last time."""
        for video in self.pending():
            if video.id not in self._asked and self.only(video):
                self._asked[video.id] = self._open[video.id] = video
                self._at[video.id] = video.done
                self._jobs.put(video)
        if self._open and self._thread is None:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()

    def poll(self) -> None:
        """Write what was done since the last time, and ask for videos that were added."""
        self.take_answers()
        self.refill()

    def take_answers(self, wait: float = 0.0) -> None:
        """Write what has come back; if nothing has, wait so many seconds for it."""
        with suppress(Empty):
            self._take(self._answers.get(timeout=wait) if wait else self._answers.get_nowait())
            while True:
                self._take(self._answers.get_nowait())

    def step(self) -> BackgroundStep:
        """How far it is."""
        total = sum(video.duration for video in self._asked.values())
        done = sum(min(self._at[id], video.duration) for id, video in self._asked.items())
        before = sum(video.done for video in self._asked.values())
        present = next(iter(self._open.values()), None)
        return BackgroundStep(
            self.WHAT, len(self._asked) - len(self._open), len(self._asked), done, total, max(0.0, done - before),
            time.monotonic() - self._begun, present.name if present else "",
        )  # fmt: skip

    def _run(self) -> None:
        """The thread: one video after the other."""
        while (video := self._jobs.get()) is not None:
            try:
                stamp = Stamp.of(video.path)
                if (stamp.size, stamp.mtime_ns) != (video.size, video.mtime_ns):
                    raise MediaError("has changed since it was added; add it again")
                for part in self.work(video):
                    self._answers.put(_Answer(video, part))
                self._answers.put(_Answer(video))
            except MediaError as e:
                self._answers.put(_Answer(video, failed=str(e).removeprefix(f"{video.path}: ")))
            except MomentseekError as e:
                self._answers.put(_Answer(video, fault=e))
                return
            except Exception as e:  # the file is gone, or the process was closed under it
                self._answers.put(_Answer(video, failed=f"cannot be read ({type(e).__name__}: {e})"))

    def _take(self, answer: _Answer[V, P]) -> None:
        catalog, video = self.library.catalog, answer.video
        if answer.fault is not None:
            self.fault = answer.fault
            self.report.notes.append(f"{self.UNDONE}: {answer.fault}")
            return
        if answer.part is not None:
            with catalog.changes():
                self._at[video.id] = self.keep(video, answer.part)
            return
        self._open.pop(video.id, None)
        self._at[video.id] = video.duration
        if not catalog.videos([video.id]):  # removed meanwhile
            return
        if answer.failed is not None:
            self._fail(video, answer.failed)
        else:
            self.finish_video(video)

    def _fail(self, video: V, reason: str) -> None:
        with self.library.catalog.changes():
            self.note_failure(video, reason)
        self.note(video, f"{self.UNDONE_IN_VIDEO}: {printable(reason)}")

    def note(self, video: V, text: str) -> None:
        """Tell what is to be known of a video."""
        self.report.noted.append(VideoNote(video.path, text))
        self.show(IngestNote("noted", video.path, f"{printable(video.name)}: {text}"))


def finish_runs(runs: Sequence[BackgroundPass[Any, Any]]) -> None:
    """Wait until everything was done that goes on beside the pictures, and show how far the first of it is."""
    for run in runs:
        run.refill()
    while waiting := [run for run in runs if run.is_open]:
        for run in waiting:
            run.take_answers(POLL_SECONDS / len(waiting))
        waiting[0].show(waiting[0].step())
    for run in runs:
        run.finish_run()


def run_alone(run: BackgroundPass[Any, Any], report: AddReport) -> None:
    """Do one kind of work on its own; Ctrl-C keeps what was done and says so."""
    begun = time.monotonic()
    try:
        with run:
            finish_runs([run])
    except KeyboardInterrupt:
        report.elapsed = time.monotonic() - begun
        raise AddInterrupted(report) from None
    report.elapsed = time.monotonic() - begun
    if run.fault is not None:
        raise run.fault


def usual_threads() -> int:
    """Threads for a process that has the machine to itself."""
    return max(1, (os.cpu_count() or 1))
