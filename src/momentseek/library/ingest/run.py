"""The run of an ``add``: events from the reading thread in, whole videos out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from momentseek.encoders.protocol import ImageTextEncoder
from momentseek.library.files import VideoFile
from momentseek.library.ingest.batches import BatchEncoder, VideoAssembly
from momentseek.library.ingest.events import (
    ClipFrame,
    FileCopy,
    FileFailure,
    FileUpdate,
    IngestEvent,
    IngestJob,
    PartEnd,
    UnchangedFile,
    VideoEnd,
    VideoStart,
)
from momentseek.library.ingest.reader import ReadSettings, events
from momentseek.library.ingest.report import AddReport, IngestNote, IngestStep, ResumedVideo, ShowIngest, VideoNote
from momentseek.library.ingest.writer import FinishedVideo, SegmentWriter
from momentseek.library.paths import clock_text
from momentseek.library.rows import StoredVectors
from momentseek.library.stamp import shown
from momentseek.library.video import Failure, Video
from momentseek.library.video_parts import VideoParts

AHEAD = 48
"""Frames decoded before the encoder asks for them: three batches."""
TELL_EVERY = 0.1


class IngestRun:
    """One run over a list of files."""

    def __init__(
        self,
        files: Sequence[VideoFile],
        plan: ReadSettings,
        encoder: ImageTextEncoder,
        pool: SegmentWriter,
        copy: Callable[[int], tuple[Video, StoredVectors] | None],
        report: AddReport,
        progress: ShowIngest | None,
    ) -> None:
        self.files, self.plan, self.pool, self.copy, self.report = files, plan, pool, copy, report
        self.tell = progress or (lambda _: None)
        self.encoding = BatchEncoder(encoder, pool.clock)
        self.begun = time.monotonic()
        self.first: float | None = None
        self.done = 0
        self.bytes = self.bytes_encoded = 0
        self.of_bytes = sum(file.size for file in files)
        self.told = 0.0
        self.last = ""

    def go(self) -> None:
        """Do all files; on Ctrl-C or an error, keep what is whole."""
        from momentseek.media import ReadAhead

        source = ReadAhead(events(self.files, self.plan, self.pool.clock), AHEAD)
        try:
            with source:
                while True:
                    with self.pool.clock.stage("wait for frames"):
                        event = next(source, None)
                    if event is None:
                        break
                    self.take(event)
                self.encoding.encode()
                self.finish()
                self.pool.flush()
        except KeyboardInterrupt:
            self.finish()
            self.pool.flush()
            raise

    def take(self, event: IngestEvent) -> None:
        """One event."""
        match event:
            case ClipFrame(job, pixels):
                if self.encoding.image(job, pixels):
                    self.finish()
                    self.step()
            case VideoStart():
                self.begin(event)
            case PartEnd():
                self.encoding.end_part(event)
            case VideoEnd():
                self.encoding.end(event)
                self.finish()
            case FileFailure():
                self.fail(event)
            case UnchangedFile(file):
                self.report.unchanged += 1
                self.file_done(file)
            case FileUpdate(file):
                self.pool.updates.append(event)
                self.report.moved += event.moved
                self.report.unchanged += not event.moved
                self.file_done(file)
            case FileCopy(file):
                self.copied(event)
                self.file_done(file)
        if self.pool.due:
            self.pool.flush()

    def begin(self, event: VideoStart) -> None:
        """Frames of a video follow."""
        self.first = self.first or time.monotonic()
        job, plan = event.job, self.plan
        checkpoint = VideoParts(plan.library, job.hash, plan.fingerprint, plan.clip_seconds, plan.part_clips, plan.dim)
        self.encoding.begin(event, checkpoint)
        if event.kept:
            at = len(event.kept) * plan.part_clips * plan.clip_seconds
            self.report.resumed.append(ResumedVideo(job.file.path, at, job.probe.duration))
            text = f"resumed at {clock_text(at)} of {clock_text(job.probe.duration)}"
            self.tell(IngestNote("resumed", job.file.path, f"{shown(job.file.name)}: {text}"))
        self.last = job.file.name

    def finish(self) -> None:
        """Hand over the videos that are whole."""
        for assembly in self.encoding.whole():
            job, ended = assembly.job, assembly.ended
            assert ended is not None
            video = _video(job, ended, assembly, time.time())
            self.pool.add(
                FinishedVideo(video, job.cues, job.subtitles, assembly.joined(), written=assembly.checkpoint.drop)
            )
            kept = sum(r.at for r in self.report.resumed if r.path == job.file.path)
            self.report.seconds += max(0.0, ended.duration - kept)
            self.report.changed += job.changed
            self.report.added += not job.changed
            self.bytes_encoded += job.stamp.size
            self.noted(job.file, job.notes)
            self.file_done(job.file)

    def copied(self, event: FileCopy) -> None:
        """The bytes are in the library: take the vectors from there."""
        found = self.copy(event.known.id)
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
        self.pool.add(FinishedVideo(new, event.cues, event.subtitles, rows, replaces))
        self.noted(event.file, event.notes)
        if here:
            self.report.refreshed += 1
        elif event.replaces:
            self.report.moved += 1
        else:
            self.report.copied += 1

    def fail(self, event: FileFailure) -> None:
        """A file that cannot be added."""
        if event.job is not None:
            self.encoding.fail(event.job)
        if event.before:
            self.report.failed_before += 1
        else:
            self.pool.failures.append((event.file, event.reason, event.stamp))
            self.report.failed.append(Failure(event.file.path, event.reason, time.time(), 1))
            self.tell(IngestNote("failed", event.file.path, f"{shown(event.file.name)}: {event.reason}"))
        self.file_done(event.file)

    def noted(self, file: VideoFile, notes: Sequence[str]) -> None:
        """What of a video could not be used, though it is in the library."""
        for note in map(shown, notes):
            self.report.noted.append(VideoNote(file.path, note))
            self.tell(IngestNote("noted", file.path, f"{shown(file.name)}: {note}"))

    def file_done(self, file: VideoFile) -> None:
        """One file less."""
        self.done += 1
        self.bytes += file.size
        self.last = file.name
        self.step()

    def step(self) -> None:
        """Say how far it is, not more often than anybody can read."""
        now = time.monotonic()
        if now - self.told < TELL_EVERY and self.done < len(self.files):
            return
        self.told = now
        present = self.encoding.open[0] if self.encoding.open else None
        at, duration, part = 0.0, 0.0, 0
        seconds = self.report.seconds
        if present is not None:
            duration = present.job.probe.duration
            at = min(present.clips * self.plan.clip_seconds, duration)
            part = int(present.job.file.size * at / duration) if duration > 0 else 0
            seconds += at - sum(r.at for r in self.report.resumed if r.path == present.job.file.path)
        step = IngestStep(
            self.done, len(self.files), self.bytes + part, self.of_bytes,
            present.job.file.name if present else self.last, at, duration, max(0.0, seconds),
            now - self.begun, now - self.first if self.first else 0.0, self.bytes_encoded + part,
        )  # fmt: skip
        self.tell(step)


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
    )
