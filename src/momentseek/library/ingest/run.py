"""IngestRun: takes events from the threads that read files, and hands finished videos to the writer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from momentseek.core.errors import LibraryError
from momentseek.core.workers import BackgroundIterator
from momentseek.library.file_stamp import printable
from momentseek.library.files import VideoFile
from momentseek.library.ingest.batches import BatchEncoder, VideoAssembly
from momentseek.library.ingest.decoding import ReadSettings, read_files
from momentseek.library.ingest.events import (
    ClipFrames,
    FileCopy,
    FileFailure,
    FileQueue,
    FileUpdate,
    IngestEvent,
    IngestJob,
    PartEnd,
    UnchangedFile,
    VideoEnd,
    VideoStart,
)
from momentseek.library.ingest.writer import FinishedVideo, SegmentWriter
from momentseek.library.paths import clock_text
from momentseek.library.report import AddReport, IngestNote, IngestStep, ResumedVideo, ShowIngest, VideoNote
from momentseek.library.segments import StoredVectors
from momentseek.library.video import Failure, Video

FRAMES_AHEAD = 48
"""Number of frames decoded ahead of the encoder: three batches."""
MAX_CLIPS_AHEAD = 4096
"""Clips of finished videos that may wait for an earlier file, 1.7 hours of video; a killed process loses them."""
SECONDS_BETWEEN_STEPS = 0.1
"""Shortest time between two progress reports."""


class IngestRun:
    """One run over a list of files, for an ``add`` or for encoding again.

    With ``readers`` above 1, several files are read at the same time. Results are still reported and written in the
    order of the files, so that the library does not depend on which file was read first.
    """

    def __init__(
        self,
        files: Sequence[VideoFile],
        settings: ReadSettings,
        writer: SegmentWriter,
        copy: Callable[[int], tuple[Video, StoredVectors] | None],
        report: AddReport,
        progress: ShowIngest | None,
        readers: int = 1,
    ) -> None:
        self.readers = readers
        self.files, self.settings, self.writer, self.copy, self.report = files, settings, writer, copy, report
        self.show = progress or (lambda _: None)
        self.encoder = BatchEncoder(settings.encoder, writer.timer)
        self.begun = time.monotonic()
        self.first: float | None = None
        self.done = 0
        self.bytes = self.bytes_encoded = 0
        self.of_bytes = sum(file.size for file in files)
        self.shown_at = 0.0
        self.last = ""
        self.queue = FileQueue(files)
        self.turns = {id(file): turn for turn, file in enumerate(files)}
        self.turn = 0
        """Position of the first file that is not done."""
        self.outcomes: dict[int, tuple[int, Callable[[], None]]] = {}
        """Later files, which wait for their turn: number of clips, and the function that handles each."""
        self.polls: Sequence[Callable[[], None]] = ()
        """Called regularly, for the background passes."""

    def go(self) -> None:
        """Process all files; on Ctrl-C, finished videos are still written."""
        ahead = max(1, FRAMES_AHEAD // self.settings.window_frames)
        sources = [read_files(self.queue, self.settings, self.writer.timer) for _ in range(self.readers)]
        source = BackgroundIterator(*sources, depth=ahead)
        try:
            with source:
                try:
                    while True:
                        with self.writer.timer.stage("wait for frames"):
                            event = next(source, None)
                        if event is None:
                            break
                        self.take(event)
                finally:
                    self.queue.end()
                self.encoder.encode()
                self.finish()
                self.writer.flush()
        except KeyboardInterrupt:
            self.show, self.polls = (lambda _: None), []  # a callback could interrupt the rest again
            self.finish()
            for turn in sorted(self.outcomes):
                self.outcomes.pop(turn)[1]()
            self.writer.flush()
            raise

    def take(self, event: IngestEvent) -> None:
        """Handle one event of a reading thread."""
        match event:
            case ClipFrames(job, frames):
                if self.encoder.add_clip(job, frames):
                    self.finish()
                    self.show_step()
            case VideoStart():
                self.begin(event)
            case PartEnd():
                self.encoder.end_part(event)
            case VideoEnd():
                self.encoder.end(event)
                if self.queue.shut:  # no more frames may come to fill the batch with
                    self.encoder.encode()
                self.finish()
            case FileFailure():
                if event.job is not None:
                    self.encoder.fail(event.job)
                self.settle(event.file, partial(self.fail, event))
            case UnchangedFile(file) | FileUpdate(file):
                self.settle(file, partial(self.update, event))
            case FileCopy(file):
                self.settle(file, partial(self.copy_video, event))
        if self.writer.is_due:
            self.writer.flush()

    def settle(self, file: VideoFile, outcome: Callable[[], None], clips: int = 0) -> None:
        """Handle a file after all files before it."""
        self.outcomes[self.turns[id(file)]] = clips, outcome
        while self.turn in self.outcomes:
            _, act = self.outcomes.pop(self.turn)
            self.turn += 1
            act()
        self.queue.shut = sum(clips for clips, _ in self.outcomes.values()) > MAX_CLIPS_AHEAD

    def begin(self, event: VideoStart) -> None:
        """Begin a video whose frames follow."""
        self.first = self.first or time.monotonic()
        job, settings = event.job, self.settings
        parts = settings.video_parts(job)
        self.encoder.begin(event, parts, settings.picture_keeper(job, len(event.kept)))
        if event.kept:
            at = len(event.kept) * settings.part_clips * settings.clip_seconds
            self.report.resumed.append(ResumedVideo(job.file.path, at, job.probe.duration))
            text = f"resumed at {clock_text(at)} of {clock_text(job.probe.duration)}"
            self.show(IngestNote("resumed", job.file.path, f"{printable(job.file.name)}: {text}"))
        self.last = job.file.name

    def finish(self) -> None:
        """Settle the videos that are completely encoded."""
        for assembly in self.encoder.take_whole():
            self.settle(assembly.job.file, partial(self.hand_over, assembly), assembly.clips)

    def hand_over(self, assembly: VideoAssembly) -> None:
        """Pass a completely encoded video to the writer."""
        job, ended = assembly.job, assembly.ended
        assert ended is not None
        video = _video(job, ended, assembly, time.time())
        self.writer.add(
            FinishedVideo(video, job.cues, job.subtitles, assembly.vectors(), on_written=assembly.parts.drop)
        )
        kept = sum(r.at for r in self.report.resumed if r.path == job.file.path)
        self.report.seconds += max(0.0, ended.duration - kept)
        self.report.changed += job.changed
        self.report.added += not job.changed
        self.bytes_encoded += job.stamp.size
        self.note(job.file, job.notes)
        self.finish_file(job.file)

    def update(self, event: UnchangedFile | FileUpdate) -> None:
        """Record that a file is in the library already, perhaps with another path or time."""
        if isinstance(event, FileUpdate):
            self.writer.updates.append(event)
        moved = isinstance(event, FileUpdate) and event.moved
        self.report.moved += moved
        self.report.unchanged += not moved
        self.finish_file(event.file)

    def copy_video(self, event: FileCopy) -> None:
        """Copy a video's vectors, because the same bytes are in the library already."""
        try:
            found = self.copy(event.known.id)
        except LibraryError as e:  # its vectors are damaged
            self.fail(FileFailure(event.file, str(e), None))
            return
        if found is None:  # removed since the reader looked
            self.fail(FileFailure(event.file, "changed while the library was; the next add tries it again", None))
            return
        video, rows = found
        path, name = event.file.path, event.file.name
        here = event.replaces and event.known.path == path
        new = replace(
            video, path=path, name=video.name if here else name, mtime_ns=event.stamp.mtime_ns, notes=event.notes
        )
        replaces = event.known.id if event.replaces else None
        self.writer.add(FinishedVideo(new, event.cues, event.subtitles, rows, replaces))
        self.note(event.file, event.notes)
        if here:
            self.report.refreshed += 1
        elif event.replaces:
            self.report.moved += 1
        else:
            self.report.copied += 1
        self.finish_file(event.file)

    def fail(self, event: FileFailure) -> None:
        """Report why a file cannot be added."""
        if event.before:
            self.report.failed_before += 1
        else:
            self.writer.failures.append((event.file, event.reason, event.stamp))
            self.report.failed.append(Failure(event.file.path, event.reason, time.time(), 1))
            self.show(IngestNote("failed", event.file.path, f"{printable(event.file.name)}: {event.reason}"))
        self.finish_file(event.file)

    def note(self, file: VideoFile, notes: Sequence[str]) -> None:
        """Report what could not be used of a video that is in the library."""
        for note in map(printable, notes):
            self.report.noted.append(VideoNote(file.path, note))
            self.show(IngestNote("noted", file.path, f"{printable(file.name)}: {note}"))

    def finish_file(self, file: VideoFile) -> None:
        """Count a file as done."""
        self.done += 1
        self.bytes += file.size
        self.last = file.name
        self.show_step()

    def show_step(self) -> None:
        """Report the progress, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self.shown_at < SECONDS_BETWEEN_STEPS and self.done < len(self.files):
            return
        self.shown_at = now
        for poll in self.polls:
            poll()
        present = self.encoder.open[0] if self.encoder.open else None
        part, seconds = 0, self.report.seconds
        for one in self.encoder.open:
            done = self.seconds_done(one)
            part += int(one.job.file.size * done / one.job.probe.duration) if one.job.probe.duration > 0 else 0
            seconds += done - sum(r.at for r in self.report.resumed if r.path == one.job.file.path)
        self.show(
            IngestStep(
                files=self.done,
                of_files=len(self.files),
                bytes=self.bytes + part,
                of_bytes=self.of_bytes,
                name=present.job.file.name if present else self.last,
                at=self.seconds_done(present) if present else 0.0,
                duration=present.job.probe.duration if present else 0.0,
                seconds=max(0.0, seconds),
                elapsed=now - self.begun,
                encoding=now - self.first if self.first else 0.0,
                bytes_encoded=self.bytes_encoded + part,
            )
        )

    def seconds_done(self, assembly: VideoAssembly) -> float:
        """Seconds of a video that are encoded."""
        return min(assembly.clips * self.settings.clip_seconds, assembly.job.probe.duration)


def _video(job: IngestJob, ended: VideoEnd, assembly: VideoAssembly, now: float) -> Video:
    probe = job.probe
    return Video(
        id=0,
        path=job.file.path,
        name=job.file.name,
        size=job.stamp.size,
        mtime_ns=job.stamp.mtime_ns,
        hash=job.hash,
        duration=ended.duration,
        width=probe.width,
        height=probe.height,
        rate=probe.rate,
        codec=probe.codec,
        clips=ended.clips,
        cues=len(job.cues),
        shots=assembly.cuts(),
        added=now,
        notes=tuple(job.notes),
        audio=probe.audio,
        sampling=job.sampling,
        recorded=probe.recorded,
        place=probe.place,
    )
