"""TrackPass: runs a producer over the videos of a library, in the background.

A thread gives the producer one video after another. The results are written by the thread that holds the library's lock
(``poll``), part by part, so that a killed process loses only the current part.

A new kind of track is one file: a subclass of :class:`TrackPass` with a :class:`TrackKind`, which implements the work
on one video (``work``) and how its parts become cues (``make_cues``).
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, ClassVar, Self

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.workers import BackgroundIterator
from momentseek.library.database import TrackKind
from momentseek.library.file_stamp import Stamp, printable
from momentseek.library.reader import LibraryReader
from momentseek.library.report import AddInterrupted, AddReport, BackgroundStep, IngestNote, ShowIngest, VideoNote
from momentseek.library.timed_text import (
    Maker,
    PendingVideo,
    TrackPart,
    fail_track,
    finish_track,
    forget_tracks,
    keep_part,
    pending_videos,
    track_parts,
)
from momentseek.media.subtitles.cues import Cue

POLL_SECONDS = 0.2
MAX_ANSWERS = 1024
"""Largest number of parts that wait to be written."""


@dataclass(frozen=True)
class _Answer:
    """A producer's answer about one video: a part, its end, or why it failed."""

    video: PendingVideo
    part: TrackPart | None = None
    failed: str | None = None
    fault: MomentseekError | None = None
    """An error of the producer itself, which ends the pass."""


@dataclass(frozen=True)
class PassRequest:
    """The videos of a pass, and where it reports to. The caller holds the library's lock."""

    library: LibraryReader
    report: AddReport = field(default_factory=AddReport)
    progress: ShowIngest | None = None
    wanted: Collection[int] | None = None
    """Ids of the videos to work on; None for all."""
    again: bool = False
    """Whether to try failed videos again, and to repeat the tracks of videos that were selected."""


class TrackPass(ABC):
    """Processes the videos of a library that wait for a producer. The caller holds the library's lock."""

    kind: ClassVar[TrackKind]
    what: str
    """The kind of work, such as ``hearing``."""
    undone: ClassVar[str]
    """Message if the producer itself fails, such as ``speech was not transcribed``."""
    undone_in_video: ClassVar[str]
    """Message if one video fails."""
    order: ClassVar[str] = "duration"
    """SQL for the order in which videos are processed."""
    after_adding: ClassVar[bool] = False
    """Whether an ``add`` starts it only after all its videos are in the library."""
    keeps_old: ClassVar[bool] = False
    """Whether an old track is used until the new one is complete."""

    def __init__(self, request: PassRequest, by: Maker) -> None:
        self.library, self.report, self.by = request.library, request.report, by
        self.show = request.progress or (lambda _: None)
        self.wanted, self.again = request.wanted, request.again
        self._jobs: SimpleQueue[PendingVideo | None] = SimpleQueue()
        self._answers: BackgroundIterator[_Answer] | None = None
        self._asked: dict[int, PendingVideo] = {}
        self._open: dict[int, PendingVideo] = {}
        self._at: dict[int, float] = {}
        self._last_id = 0
        """The largest video id examined so far, so that a large library is not listed again and again."""
        self._begun = time.monotonic()
        self.fault: MomentseekError | None = None
        """An error of the producer itself, if there was one; nothing more is done then."""
        self.library.catalog.add_kind(self.kind)

        # to be defined by producers

    @abstractmethod
    def work(self, video: PendingVideo) -> Iterator[TrackPart]:
        """Process one video from ``video.done`` on, part by part, in a thread; it must not write to the library."""

    def close(self) -> None:  # noqa: B027
        """Stop the current work."""

    def also(self) -> str:
        """SQL condition for videos to process again although they have a track (``pending_videos``)."""
        return "0"

    def make_cues(self, parts: Sequence[Any]) -> list[Cue] | None:
        """The cues of a complete track, from the contents of its parts; None if the parts have all cues already."""
        return None

    def finish_video(self, video: PendingVideo) -> None:
        """Complete the track of a video whose parts are all stored."""
        catalog = self.library.catalog
        with catalog.changes():
            cues = self.make_cues(track_parts(catalog, self.kind, video.id))
            finish_track(catalog, self.kind, video.id, self.by, video.duration, cues)
        self.count(video.duration - video.done)

    def count(self, seconds: float) -> None:  # noqa: B027
        """Count a finished video in the report, and the seconds of it that this run processed."""

    def finish_run(self) -> None:  # noqa: B027
        """Do what remains after all videos are done."""

    # running

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._jobs.put(None)
        self.close()
        self._answers = None  # its thread ends by itself, which may take long

    @property
    def is_open(self) -> bool:
        """Whether videos are waiting and can still be processed."""
        return bool(self._open) and self.fault is None

    def refill(self) -> None:
        """Queue the videos that were added to the library since the last call."""
        catalog, after = self.library.catalog, self._last_id
        self._last_id = int(catalog.rows("SELECT coalesce(max(id), 0) FROM videos")[0][0])
        if self._last_id == after:
            return
        for video in pending_videos(catalog, self.kind, self.by, self.also(), self.order, after):
            if video.id not in self._asked and (self.wanted is None or video.id in self.wanted):
                self._asked[video.id] = self._open[video.id] = video
                self._at[video.id] = video.done
                self._jobs.put(video)
        if self._open and self._answers is None:
            self._answers = BackgroundIterator(self._work_through(), depth=MAX_ANSWERS, name=self.what)

    def poll(self) -> None:
        """Write the results since the last call, and queue videos that were added."""
        self.take_answers()
        self.refill()

    def take_answers(self, wait: float = 0.0) -> None:
        """Write the results that have arrived; if there are none, wait up to ``wait`` seconds for one."""
        for answer in [] if self._answers is None else self._answers.take(wait):
            self._take(answer)

    def step(self) -> BackgroundStep:
        """The progress of the pass."""
        total = sum(video.duration for video in self._asked.values())
        done = sum(min(self._at[id], video.duration) for id, video in self._asked.items())
        before = sum(video.done for video in self._asked.values())
        present = next(iter(self._open.values()), None)
        return BackgroundStep(
            what=self.what,
            videos=len(self._asked) - len(self._open),
            of_videos=len(self._asked),
            seconds=done,
            of_seconds=total,
            fresh=max(0.0, done - before),
            elapsed=time.monotonic() - self._begun,
            name=present.name if present else "",
        )

    def note(self, video: PendingVideo, text: str) -> None:
        """Report a note about a video."""
        self.report.noted.append(VideoNote(video.path, text))
        self.show(IngestNote("noted", video.path, f"{printable(video.name)}: {text}"))

    def _work_through(self) -> Iterator[_Answer]:
        """Process one video after another; runs in a thread."""
        while (video := self._jobs.get()) is not None:
            try:
                stamp = Stamp.of(video.path)
                if (stamp.size, stamp.mtime_ns) != (video.size, video.mtime_ns):
                    raise MediaError("has changed since it was added; add it again")
                for part in self.work(video):
                    yield _Answer(video, part)
                yield _Answer(video)
            except MediaError as e:
                yield _Answer(video, failed=str(e).removeprefix(f"{video.path}: "))
            except MomentseekError as e:
                yield _Answer(video, fault=e)
                return
            except Exception as e:  # the file is gone, or the process was closed
                yield _Answer(video, failed=f"cannot be read ({type(e).__name__}: {e})")

    def _take(self, answer: _Answer) -> None:
        catalog, video = self.library.catalog, answer.video
        if answer.fault is not None:
            self.fault = answer.fault
            self.report.notes.append(f"{self.undone}: {answer.fault}")
            return
        if answer.part is not None:
            with catalog.changes():
                if catalog.videos([video.id]):  # an add may have put another in its place
                    keep_part(catalog, self.kind, video.id, self.by, answer.part)
            self._at[video.id] = answer.part.done
            return
        self._open.pop(video.id, None)
        self._at[video.id] = video.duration
        if not catalog.videos([video.id]):
            return
        if answer.failed is None:
            self.finish_video(video)
            return
        with catalog.changes():
            fail_track(catalog, self.kind, video.id, self.by, answer.failed)
        self.note(video, f"{self.undone_in_video}: {printable(answer.failed)}")


def finish_passes(passes: Sequence[TrackPass]) -> None:
    """Wait until all background passes are finished, and show the progress of the first one."""
    for one in passes:
        one.refill()
    while waiting := [one for one in passes if one.is_open]:
        for one in waiting:
            one.take_answers(POLL_SECONDS / len(waiting))
        waiting[0].show(waiting[0].step())
    for one in passes:
        one.finish_run()


def run_pass(one: TrackPass) -> AddReport:
    """Run a single pass; Ctrl-C keeps finished work and raises AddInterrupted."""
    report, catalog = one.report, one.library.catalog
    begun = time.monotonic()
    if one.again:
        with catalog.changes():
            videos = [video.id for video in catalog.videos(one.wanted)]
            forget_tracks(catalog, one.kind, videos, whole=one.wanted is not None and not one.keeps_old)
    try:
        with one:
            finish_passes([one])
    except KeyboardInterrupt:
        report.elapsed = time.monotonic() - begun
        raise AddInterrupted(report) from None
    report.elapsed = time.monotonic() - begun
    if one.fault is not None:
        raise one.fault
    return report


def usual_threads() -> int:
    """Number of threads for a process that may use the whole machine."""
    return max(1, (os.cpu_count() or 1))
