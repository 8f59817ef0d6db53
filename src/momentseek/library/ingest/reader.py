"""The reading thread: decides what each file needs, and decodes those that must be encoded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from momentseek.encoders.protocol import Pixels
from momentseek.errors import MediaError, MomentseekError
from momentseek.library.catalog import Catalog
from momentseek.library.files import VideoFile
from momentseek.library.ingest.clock import StageTimer
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
from momentseek.library.ledger import KnownFile, failed_before, has_failed, known_at, known_with, subtitle_marks
from momentseek.library.stamp import Stamp, content_hash, shown
from momentseek.library.video_parts import VideoParts
from momentseek.media.cue import Cue

MARGIN = 4.0
"""Seconds on either side of a part that its shot detector sees besides."""
MOVED_ON = "changed while it was being read; the next add tries it again"


@dataclass(frozen=True)
class ReadSettings:
    """What the reader has to know."""

    library: Path
    fingerprint: str
    dim: int
    short_side: int
    clip_seconds: float
    part_clips: int
    subtitles: Path | None = None
    retry: bool = False
    in_context: bool = False
    """Vectors depend on cues (a trained model's), so those of other cues do not serve."""
    again: bool = False
    """Decode also what is in the library already, and leave cues alone: for another encoder."""


class Changed(Exception):
    """The file is not what it was when it was begun."""


def events(files: Iterable[VideoFile], plan: ReadSettings, clock: StageTimer) -> Iterator[IngestEvent]:
    """What every file needs, in order. Nothing is written here; the catalog is read by a connection of its own."""
    catalog = Catalog(plan.library)
    try:
        for file in files:
            yield from _of_file(file, plan, catalog, clock)
    finally:
        catalog.close()


def _of_file(file: VideoFile, plan: ReadSettings, catalog: Catalog, clock: StageTimer) -> Iterator[IngestEvent]:
    stamp: Stamp | None = None
    job: IngestJob | None = None
    try:
        stamp = Stamp.of(file.path)
        done = None if plan.again else _known(file, stamp, plan, catalog, clock)
        if done is not None:
            yield done
            return
        read = _job(file, stamp, plan, catalog, clock)
        if not isinstance(read, IngestJob):
            yield read
            return
        job = read
        yield from _decoded(job, plan, clock)
    except MediaError as e:
        yield FileFailure(file, _reason(e, file), stamp, job)
    except Changed:
        yield FileFailure(file, MOVED_ON, None, job)
    except MomentseekError:
        raise  # not this file's fault
    except Exception as e:  # hostile files find ways that no decoder's author thought of; the others must not suffer
        yield FileFailure(file, shown(f"cannot be read ({type(e).__name__}: {e})"), stamp, job)


def _known(
    file: VideoFile, stamp: Stamp, plan: ReadSettings, catalog: Catalog, clock: StageTimer
) -> IngestEvent | None:
    """What is to be done with a file whose size and time are as they were; None if it must be read."""
    known = known_at(catalog, file.path)
    if known is None or not known.same(stamp):
        before = None if plan.retry else failed_before(catalog, file.path, stamp)
        return FileFailure(file, before, stamp, before=True) if before is not None else None
    marks = subtitle_marks(file.path, _folder(plan, known))
    if marks != known.subtitles:
        if plan.in_context:
            return None
        return _copied(file, known, stamp, marks, clock, replaces=True)
    if has_failed(catalog, file.path):  # it was another file for a while, and is the old one again
        return FileUpdate(file, known, stamp, marks, moved=False)
    return UnchangedFile(file)


def _job(
    file: VideoFile, stamp: Stamp, plan: ReadSettings, catalog: Catalog, clock: StageTimer
) -> IngestJob | FileCopy | FileUpdate:
    from momentseek.media import probe

    if stamp.size == 0:
        raise MediaError("is empty; get another copy")
    with clock.stage("hash"):
        hash = content_hash(file.path)
    known = known_at(catalog, file.path)
    if plan.again and known is not None and known.hash != hash:
        raise MediaError("has changed since it was added; add it again first")
    if not plan.again and (twin := _twin(file, stamp, hash, known, plan, catalog, clock)) is not None:
        return twin
    with clock.stage("probe"):
        probed = probe(file.path)
    marks = subtitle_marks(file.path, _folder(plan, known))
    cues, notes = ((), ()) if plan.again else _cues(file.path, marks, clock)
    return IngestJob(file, stamp, hash, probed, cues, marks, known is not None, list(notes))


def _twin(
    file: VideoFile,
    stamp: Stamp,
    hash: str,
    known: KnownFile | None,
    plan: ReadSettings,
    catalog: Catalog,
    clock: StageTimer,
) -> FileCopy | FileUpdate | None:
    """A video in the library with the same bytes: this file touched, moved, or copied."""
    twins = known_with(catalog, hash, stamp.size)
    here = next((twin for twin in twins if known and twin.id == known.id), None)
    left = next((twin for twin in twins if not os.path.lexists(twin.path)), None)
    twin = here or left or (twins[0] if twins else None)
    if twin is None:
        return None
    if Stamp.of(file.path) != stamp:
        raise Changed
    marks = subtitle_marks(file.path, _folder(plan, twin))
    if (here or (left and known is None)) and marks == twin.subtitles:
        return FileUpdate(file, twin, stamp, marks, moved=here is None)
    if plan.in_context:
        return None
    return _copied(file, twin, stamp, marks, clock, replaces=twin in (here, left))


def _copied(
    file: VideoFile, known: KnownFile, stamp: Stamp, marks: tuple[str, ...], clock: StageTimer, *, replaces: bool
) -> FileCopy:
    cues, notes = _cues(file.path, marks, clock)
    return FileCopy(file, known, stamp, marks, cues, notes, replaces)


def _cues(path: Path, marks: tuple[str, ...], clock: StageTimer) -> tuple[tuple[Cue, ...], tuple[str, ...]]:
    from momentseek.media.subtitles import cues_of

    with clock.stage("subtitles"):
        cues = cues_of(path, marks[0] or None)
    return cues.found, cues.problems


def _folder(plan: ReadSettings, known: KnownFile | None) -> Path | None:
    """Where subtitles are besides: what is asked for now, or was when the video was added."""
    if plan.subtitles is not None or known is None:
        return plan.subtitles
    return Path(known.subtitles[0]) if known.subtitles and known.subtitles[0] else None


def _decoded(job: IngestJob, plan: ReadSettings, clock: StageTimer) -> Iterator[IngestEvent]:
    checkpoint = VideoParts(plan.library, job.hash, plan.fingerprint, plan.clip_seconds, plan.part_clips, plan.dim)
    kept = tuple(checkpoint.load())
    yield VideoStart(job, kept)
    clips = len(kept) * plan.part_clips
    part = len(kept)
    end = job.probe.duration
    while True:
        reading = _Part(job, plan, part)
        for pixels in reading.frames(clock):
            clips += 1
            yield ClipFrame(job, pixels)
        if Stamp.of(job.file.path) != job.stamp:
            raise Changed
        if reading.damage and reading.damage not in job.notes:
            job.notes.append(reading.damage)
        yield PartEnd(job, part, reading.shots())
        part += 1
        if clips < part * plan.part_clips or reading.end is not None:
            end = reading.end or end
            break
    if not clips:
        raise MediaError("none of its pictures can be decoded; get another copy")
    yield VideoEnd(job, clips, end)


class _Part:
    """One stretch of clips, with its own shot detector, seen by nobody else."""

    def __init__(self, job: IngestJob, plan: ReadSettings, part: int) -> None:
        from momentseek.media.shots import ShotDetector

        self.job, self.plan, self.part = job, plan, part
        self.first, self.last = part * plan.part_clips, (part + 1) * plan.part_clips
        self.detector = ShotDetector()
        self.damage = ""
        self.end: float | None = None
        """Where the video ends, if it was reached."""

    def frames(self, clock: StageTimer) -> Iterator[Pixels]:
        from momentseek.media import frames

        length = self.plan.clip_seconds
        source = frames(
            self.job.file.path,
            1 / length,
            start=max(0.0, self.first * length - MARGIN),
            end=self.last * length + MARGIN,
            short_side=self.plan.short_side,
            spy=self.detector.push,
        )
        with closing(source):
            while True:
                with clock.stage("decode"):
                    try:
                        frame = next(source, None)
                    except MediaError as e:
                        if not self.first:
                            raise
                        self.damage, self.end = _reason(e, self.job.file), self.first * length
                        return
                if frame is None:
                    break
                if self.first <= int(frame.time / length) < self.last:
                    with clock.stage("wait for room"):
                        yield frame.pixels
        self.damage = str(source.damage or "")
        if source.duration is not None and source.duration <= self.last * length:
            self.end = source.duration

    def shots(self) -> tuple[float, ...]:
        length = self.plan.clip_seconds
        first, last = self.first * length, self.last * length
        return tuple(t for t in self.detector.boundaries() if first <= t < last)


def _reason(error: MediaError, file: VideoFile) -> str:
    """Why, without the path, which stands beside it wherever it is shown."""
    text = str(error)
    for path in (str(file.path), shown(file.path), repr(str(file.path))):
        text = text.removeprefix(f"{path}: ")
    return shown(text)
