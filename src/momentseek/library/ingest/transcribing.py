"""TranscribeRun: hears videos beside the pictures, in a process and a thread of its own.

The thread asks the recogniser's process for one video after the other; what comes back is written by the thread that
holds the library's lock (``poll``), part by part, so that a kill costs the part that was being heard.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from momentseek.errors import MediaError, MomentseekError
from momentseek.library.damage import SegmentDamage, damage_message
from momentseek.library.file_stamp import Stamp, printable
from momentseek.library.ingest.report import AddInterrupted, AddReport, HearingStep, IngestNote, ShowIngest, VideoNote
from momentseek.library.ingest.speech import store_cue_vectors
from momentseek.library.ingest.timer import StageTimer
from momentseek.library.reader import LibraryReader
from momentseek.library.segment_merge import merge_segments
from momentseek.library.transcripts import (
    UnheardVideo,
    finish_transcript,
    forget_transcripts,
    keep_part,
    note_unheard,
    spoken_cues,
    transcript,
    unheard_videos,
)
from momentseek.transcription import DEFAULT_TRANSCRIBER, HeardPart, TranscriberProcess, transcriber_print

POLL_SECONDS = 0.2
SEGMENTS_BETWEEN_MERGES = 16


def transcribe_videos(
    library: LibraryReader,
    transcriber: str,
    wanted: Collection[int] | None = None,
    *,
    again: bool = False,
    progress: ShowIngest | None = None,
) -> AddReport:
    """Hear the videos of a library that have sound and no cues, or those of ``wanted``. The caller holds its lock."""
    report = AddReport()
    begun = time.monotonic()
    catalog = library.catalog
    catalog.make_transcripts()
    library.paths.drop_orphans(catalog)
    if again:
        with catalog.changes():
            forget_transcripts(catalog, [video.id for video in catalog.videos(wanted)])
    threads = max(1, (os.cpu_count() or 1))
    run = TranscribeRun(
        library, report, progress, transcriber=transcriber, threads=threads,
        only=lambda video: wanted is None or video.id in wanted,
    )  # fmt: skip
    try:
        with run:
            run.finish()
    except KeyboardInterrupt:
        report.elapsed = time.monotonic() - begun
        raise AddInterrupted(report) from None
    report.elapsed = time.monotonic() - begun
    if run.fault is not None:
        raise run.fault
    if run.damages:
        report.notes.append(damage_message(catalog, run.damages.values()))
    return report


@dataclass(frozen=True)
class _Answer:
    """What came back of one video: a part, its end, or why it failed."""

    video: UnheardVideo
    part: HeardPart | None = None
    failed: str | None = None
    fault: MomentseekError | None = None
    """What is wrong with the recogniser itself: nothing more can be heard."""


class TranscribeRun:
    """Hears the videos of a library that have sound and no cues. The caller holds the library's lock."""

    def __init__(
        self,
        library: LibraryReader,
        report: AddReport,
        progress: ShowIngest | None = None,
        *,
        transcriber: str = DEFAULT_TRANSCRIBER,
        threads: int = 1,
        timer: StageTimer | None = None,
        only: Callable[[UnheardVideo], bool] = lambda _: True,
    ) -> None:
        self.library, self.report, self.show, self.only = library, report, progress or (lambda _: None), only
        self.transcriber, self.fingerprint = transcriber, transcriber_print(transcriber)
        self.timer = timer or StageTimer()
        library.catalog.make_transcripts()
        self._process = TranscriberProcess(transcriber, threads)
        self._jobs: SimpleQueue[UnheardVideo | None] = SimpleQueue()
        self._answers: SimpleQueue[_Answer] = SimpleQueue()
        self._thread: Thread | None = None
        self._asked: dict[int, UnheardVideo] = {}
        self._open: dict[int, UnheardVideo] = {}
        self._at: dict[int, float] = {}
        self._begun = time.monotonic()
        self._written = 0
        self.damages: dict[str, SegmentDamage] = {}
        """Segments that were found damaged and are not joined with others."""
        self.fault: MomentseekError | None = None
        """What is wrong with the recogniser itself, once that is known: nothing more is heard."""

    def __enter__(self) -> TranscribeRun:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()
        self._jobs.put(None)

    def refill(self) -> None:
        """Ask for the videos that have become part of the library since the last time."""
        for video in unheard_videos(self.library.catalog, fingerprint=self.fingerprint):
            if video.id not in self._asked and self.only(video):
                self._asked[video.id] = self._open[video.id] = video
                self._at[video.id] = video.heard
                self._jobs.put(video)
        if self._open and self._thread is None:
            self._thread = Thread(target=self._work, daemon=True)
            self._thread.start()

    def poll(self) -> None:
        """Write what was heard since the last time, and ask for videos that were added."""
        with suppress(Empty):
            while True:
                self._take(self._answers.get_nowait())
        self.refill()

    def finish(self) -> None:
        """Wait until everything was heard."""
        self.refill()
        while self._open and self.fault is None:
            with suppress(Empty):
                self._take(self._answers.get(timeout=POLL_SECONDS))
            self.show(self.step())
        if self._written:
            self._merge()

    def step(self) -> HearingStep:
        """How far it is."""
        total = sum(video.duration for video in self._asked.values())
        done = sum(min(self._at[id], video.duration) for id, video in self._asked.items())
        before = sum(video.heard for video in self._asked.values())
        present = next(iter(self._open.values()), None)
        return HearingStep(
            len(self._asked) - len(self._open), len(self._asked), done, total, max(0.0, done - before),
            time.monotonic() - self._begun, present.name if present else "",
        )  # fmt: skip

    def _work(self) -> None:
        """The thread: hear one video after the other."""
        while (video := self._jobs.get()) is not None:
            try:
                stamp = Stamp.of(video.path)
                if (stamp.size, stamp.mtime_ns) != (video.size, video.mtime_ns):
                    raise MediaError("has changed since it was added; add it again")
                for part in self._process.hear(video.path, video.heard, video.language):
                    self._answers.put(_Answer(video, part))
                self._answers.put(_Answer(video))
            except MediaError as e:
                reason = str(e).removeprefix(f"{video.path}: ")
                self._answers.put(_Answer(video, failed=reason))
            except MomentseekError as e:
                self._answers.put(_Answer(video, fault=e))
                return
            except Exception as e:  # the file is gone, or the process was closed under it
                self._answers.put(_Answer(video, failed=f"cannot be heard ({type(e).__name__}: {e})"))

    def _take(self, answer: _Answer) -> None:
        catalog, video = self.library.catalog, answer.video
        if answer.fault is not None:
            self.fault = answer.fault
            self.report.notes.append(f"what is said was not heard: {answer.fault}")
            return
        if answer.part is not None:
            self._at[video.id] = answer.part.heard
            with catalog.changes():
                keep_part(catalog, video.id, self.transcriber, self.fingerprint, answer.part)
            return
        self._open.pop(video.id, None)
        self._at[video.id] = video.duration
        if not catalog.videos([video.id]):  # removed meanwhile
            return
        if answer.failed is not None:
            self._fail(video, answer.failed)
            return
        self._finish_video(video)

    def _fail(self, video: UnheardVideo, reason: str) -> None:
        catalog = self.library.catalog
        with catalog.changes():
            note_unheard(catalog, video.id, self.transcriber, self.fingerprint, reason)
        text = f"what is said in it was not heard: {printable(reason)}"
        self.report.noted.append(VideoNote(video.path, text))
        self.show(IngestNote("noted", video.path, f"{printable(video.name)}: {text}"))

    def _finish_video(self, video: UnheardVideo) -> None:
        catalog = self.library.catalog
        found = transcript(catalog, video.id)
        assert found is not None
        with self.timer.stage("encode speech"):
            rows = store_cue_vectors(self.library, video.id, spoken_cues(found))
        with catalog.changes():
            finish_transcript(catalog, found, video.duration)
            for row in rows:
                catalog.insert_segment(row)
        self.report.heard += 1
        self.report.heard_seconds += video.duration - video.heard
        self._written += len(rows)
        if self._written >= SEGMENTS_BETWEEN_MERGES:
            self._merge()

    def _merge(self) -> None:
        merge_segments(self.library.catalog, self.library.paths, "speech", self.damages)
        self._written = 0
