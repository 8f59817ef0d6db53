"""The work of a reading thread: it decides what each file needs, and decodes those that must be encoded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from momentseek.core.errors import MediaError, MomentseekError
from momentseek.core.pinned_file import FileChangedError, PinnedFile
from momentseek.library.catalog import Catalog
from momentseek.library.encoders import encoder_row
from momentseek.library.file_stamp import Stamp, content_hash, printable
from momentseek.library.files import VideoFile
from momentseek.library.ingest.batches import window_frames
from momentseek.library.ingest.events import (
    ClipFrames,
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
from momentseek.library.kept_pictures import KeptPictures, PictureKeeper
from momentseek.library.known_files import (
    KnownFile,
    earlier_failure,
    file_at,
    files_with_content,
    has_failed,
    subtitle_marks,
)
from momentseek.library.options import AddOptions
from momentseek.library.report import StageTimer
from momentseek.library.video_parts import VideoParts
from momentseek.media.decode import Sampling
from momentseek.media.sandbox.calls import cues_of, frames, probe
from momentseek.media.sandbox.process import warm
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.protocol import ImageTextEncoder, Pixels
from momentseek.recognition.runtime import available_cores

SHOT_MARGIN_SECONDS = 4.0
"""Seconds before and after a part that its shot detector also gets."""
FILE_CHANGED = "changed while it was being read; the next add tries it again"


@dataclass(frozen=True)
class ReadSettings:
    """The settings of a reading thread: about the library, and what to do with the files."""

    library: Path
    clip_seconds: float
    encoder: ImageTextEncoder
    """The encoder of frames."""
    options: AddOptions
    threads: int | None
    """Number of threads to decode each file; None for the best number."""
    in_context: bool = False
    """Whether vectors depend on cues, as a trained model's do, so that a copy with other cues must be encoded again."""
    second: ImageTextEncoder | None = None
    """The second encoder, for which pictures are cached; None if there is none."""
    again: bool = False
    """Whether to decode files that are in the library already, with their old sampling and without cues, for another
    encoder."""

    @property
    def part_clips(self) -> int:
        """Clips of a part of a long video."""
        return self.options.pace.part_clips

    @property
    def window_frames(self) -> int:
        """Frames of each clip that the encoder looks at."""
        return window_frames(self.encoder)

    @property
    def sampling(self) -> Sampling:
        """How pictures are sampled: all of them for an encoder that looks at what moves between them."""
        return "exact" if self.window_frames > 1 else self.options.sampling

    def video_parts(self, job: IngestJob) -> VideoParts:
        """The storage of a video's finished parts, which depends on its content and sampling."""
        name = encoder_row("vision", "", self.encoder).fingerprint
        encoder = name if job.sampling == "exact" else f"{name}\0{job.sampling}"
        return VideoParts(self.library, job.hash, encoder, self.clip_seconds, self.part_clips, self.encoder.dim)

    def picture_keeper(self, job: IngestJob, parts: int) -> PictureKeeper | None:
        """The cache of a video's pictures for the second encoder, if there is one; ``parts`` parts are done already."""
        if self.second is None or self.second.short_side > self.encoder.short_side:  # decoded too small
            return None
        kept = KeptPictures(self.library, job.hash, self.second.short_side)
        return PictureKeeper(kept, self.encoder, self.clip_seconds, first=parts * self.part_clips)


class SourceChangedError(Exception):
    """The file has changed since reading began."""


def read_files(files: Iterable[VideoFile], settings: ReadSettings, timer: StageTimer) -> Iterator[IngestEvent]:
    """Read files and yield events that say what to do with each, in order.

    Nothing is written here, and the catalog is read with a separate connection. Several threads can do this at the same
    time, each with its own files.
    """
    with closing(Catalog(settings.library)) as catalog:
        reader = FileReader(settings, catalog, timer)
        for file in files:
            yield from reader.read(file)


class FileReader:
    """Decides by the catalog what a file needs, and decodes it if it must be encoded."""

    def __init__(self, settings: ReadSettings, catalog: Catalog, timer: StageTimer) -> None:
        self.settings, self.catalog, self.timer = settings, catalog, timer

    def read(self, file: VideoFile) -> Iterator[IngestEvent]:
        """Yield the events for a file."""
        stamp: Stamp | None = None
        job: IngestJob | None = None
        try:
            stamp = Stamp.of(file.source)
            done = None if self.settings.again else self._check_known(file, stamp)
            begun = done or self._begin_job(file, stamp)
            if not isinstance(begun, IngestJob):
                yield begun
                return
            job = begun
            yield from decode_video(job, self.settings, self.timer)
        except MediaError as e:
            yield FileFailure(file, _reason(e, file), stamp, job)
        except SourceChangedError:
            yield FileFailure(file, FILE_CHANGED, None, job)
        except MomentseekError:
            raise  # not this file's fault
        except Exception as e:  # a hostile file may cause any error, which must not affect other files
            yield FileFailure(file, printable(f"cannot be read ({type(e).__name__}: {e})"), stamp, job)

    def _check_known(self, file: VideoFile, stamp: Stamp) -> IngestEvent | None:
        """The event for a file whose size and time are known; None if it must be read."""
        known = file_at(self.catalog, file.path)
        if known is None or not known.same(stamp):
            before = None if self.settings.options.retry else earlier_failure(self.catalog, file.path, stamp)
            return FileFailure(file, before, stamp, before=True) if before is not None else None
        marks = self._marks(file, known)
        if known.subtitles not in (marks, self._marks(file, known, links=True)):
            return None if self.settings.in_context else self._copy(file, known, stamp, marks, replaces=True)
        if has_failed(self.catalog, file.path):  # it was replaced for a while, and is the old file again
            return FileUpdate(file, known, stamp, marks, moved=False)
        return UnchangedFile(file)

    def _begin_job(self, file: VideoFile, stamp: Stamp) -> IngestJob | FileCopy | FileUpdate:
        if stamp.size == 0:
            raise MediaError("is empty; get another copy")
        warm()
        again = self.settings.again
        with self.timer.stage("hash"):
            hash = content_hash(file.source)
        known = file_at(self.catalog, file.path)
        if again and known is not None and known.hash != hash:
            raise MediaError("has changed since it was added; add it again first")
        if not again and (twin := self._find_twin(file, stamp, hash, known)) is not None:
            return twin
        with self.timer.stage("probe"):
            probed = probe(file.source)
        marks = self._marks(file, known)
        cues, notes = ((), ()) if again else self._read_cues(file, marks, probed.duration)
        sampling = self.settings.sampling
        if again and known is not None:
            sampling = next((video.sampling for video in self.catalog.videos([known.id])), sampling)
        changed = known is not None
        return IngestJob(file, stamp, hash, probed, cues, marks, changed=changed, sampling=sampling, notes=list(notes))

    def _find_twin(
        self, file: VideoFile, stamp: Stamp, hash: str, known: KnownFile | None
    ) -> FileCopy | FileUpdate | None:
        """The event for a file with the same bytes as a video in the library: touched, moved, or copied."""
        twins = files_with_content(self.catalog, hash, stamp.size)
        here = next((twin for twin in twins if known and twin.id == known.id), None)
        left = next((twin for twin in twins if not os.path.lexists(twin.path) or _is_link_to(twin.path, file)), None)
        twin = here or left or (twins[0] if twins else None)
        if twin is None:
            return None
        if Stamp.of(file.source) != stamp:
            raise SourceChangedError
        marks = self._marks(file, twin)
        if (here or (left and known is None)) and marks == twin.subtitles:
            return FileUpdate(file, twin, stamp, marks, moved=here is None)
        if self.settings.in_context:
            return None
        return self._copy(file, twin, stamp, marks, replaces=twin in (here, left))

    def _copy(
        self, file: VideoFile, known: KnownFile, stamp: Stamp, marks: tuple[str, ...], *, replaces: bool
    ) -> FileCopy:
        duration = next((video.duration for video in self.catalog.videos([known.id])), None)
        cues, notes = self._read_cues(file, marks, duration)
        return FileCopy(file, known, stamp, marks, cues, notes, replaces)

    def _read_cues(
        self, file: VideoFile, marks: tuple[str, ...], duration: float | None
    ) -> tuple[tuple[Cue, ...], tuple[str, ...]]:
        with self.timer.stage("subtitles"):
            folder = os.path.realpath(marks[0]) if marks[0] else None
            found = cues_of(file.source, folder, duration=duration, links=self.settings.options.links)
        return found.cues, found.problems

    def _marks(self, file: VideoFile, known: KnownFile | None, *, links: bool = False) -> tuple[str, ...]:
        """Marks of a file's subtitles in the given folder, or in the one given when the video was added."""
        folder = self.settings.options.subtitles
        if folder is None and known is not None and known.subtitles and known.subtitles[0]:
            folder = Path(known.subtitles[0])
        return subtitle_marks(file.path, folder, links=links or self.settings.options.links)


def _is_link_to(path: Path, file: VideoFile) -> bool:
    """Whether a video's old path now leads to the file through a link."""
    return path != file.path and os.path.realpath(path) == str(file.path)


def decode_video(job: IngestJob, settings: ReadSettings, timer: StageTimer) -> Iterator[IngestEvent]:
    """Decode a video part by part and yield its frames; parts that an earlier run has finished are not decoded."""
    if not job.probe.width:  # a recording of sound
        yield VideoStart(job)
        yield VideoEnd(job, 0, job.probe.duration)
        return
    kept = tuple(settings.video_parts(job).load())
    yield VideoStart(job, kept)
    clips = len(kept) * settings.part_clips
    part = len(kept)
    end = job.probe.duration
    while True:
        reading = PartReader(job, settings, part)
        for clip in reading.clips(timer):
            clips += 1
            yield ClipFrames(job, clip)
        if Stamp.of(job.file.source) != job.stamp:
            raise SourceChangedError
        if reading.damage and reading.damage not in job.notes:
            job.notes.append(reading.damage)
        yield PartEnd(job, part, reading.shots())
        part += 1
        if clips < part * settings.part_clips or reading.end is not None:
            end = reading.end or end
            break
    if not clips:
        raise MediaError("none of its pictures can be decoded; get another copy")
    yield VideoEnd(job, clips, end)


class PartReader:
    """Reads one part of a video, a fixed number of clips, with its own shot detector."""

    def __init__(self, job: IngestJob, settings: ReadSettings, part: int) -> None:
        self.job, self.settings, self.part = job, settings, part
        self.first, self.last = part * settings.part_clips, (part + 1) * settings.part_clips
        self.cuts: tuple[float, ...] = ()
        self.damage = ""
        self.end: float | None = None
        """The end of the video in seconds; None if the part ends before it."""

    def clips(self, timer: StageTimer) -> Iterator[tuple[Pixels, ...]]:
        """The frames of each clip of the part."""
        held: list[Pixels] = []
        at = self.first
        for clip, pixels in self._frames(timer):
            if clip != at and held:
                yield tuple(held)
                held = []
            at = clip
            held.append(pixels)
            if len(held) == self.settings.window_frames:
                yield tuple(held)
                held = []
        if held:
            yield tuple(held)

    def _frames(self, timer: StageTimer) -> Iterator[tuple[int, Pixels]]:
        """Each frame of the part, with the number of its clip."""
        length = self.settings.clip_seconds
        source = frames(
            PinnedFile(self.job.file.path, self.job.stamp.size, self.job.stamp.mtime_ns),
            self.settings.window_frames / length,
            start=max(0.0, self.first * length - SHOT_MARGIN_SECONDS),
            end=self.last * length + SHOT_MARGIN_SECONDS,
            short_side=self.settings.encoder.short_side,
            shots=True,
            sampling=self.job.sampling,
            threads=self.settings.threads,
            hardware=self.settings.options.hardware,
        )
        with closing(source):
            while True:
                with timer.stage("decode"):
                    try:
                        frame = next(source, None)
                    except FileChangedError:
                        raise SourceChangedError from None
                    except MediaError as e:
                        if not self.first:
                            raise
                        self.damage, self.end = _reason(e, self.job.file), self.first * length
                        return
                if frame is None:
                    break
                clip = int(frame.time / length)
                if self.first <= clip < self.last:
                    with timer.stage("wait for room"):
                        yield clip, frame.pixels
        self.damage, self.cuts = str(source.damage or ""), source.shots
        if source.duration is not None and source.duration <= self.last * length:
            self.end = source.duration

    def shots(self) -> tuple[float, ...]:
        """Times of the cuts in the part, in seconds of the video; known after all its frames were read."""
        length = self.settings.clip_seconds
        first, last = self.first * length, self.last * length
        return tuple(t for t in self.cuts if first <= t < last)


def _reason(error: MediaError, file: VideoFile) -> str:
    """The message of an error without the path, which is shown next to it anyway."""
    text = str(error)
    for path in (str(file.path), printable(file.path), repr(str(file.path))):
        text = text.removeprefix(f"{path}: ")
    return printable(text)


MAX_READERS = 4
"""Default limit of files that are read at the same time; each has a process of 100 MB or more."""


def reader_count(files: int, asked: int | None = None) -> int:
    """The number of files to read at the same time: as requested, or one per core up to ``MAX_READERS``.

    >>> reader_count(1), reader_count(100, asked=3), reader_count(2, asked=3), reader_count(0)
    (1, 3, 2, 1)
    """
    return max(1, min(files, min(MAX_READERS, available_cores()) if asked is None else asked))


def decoder_threads(readers: int) -> int | None:
    """Number of threads to decode each of several files; None (the best number) if only one file is read at a time.

    Several threads within a file take a sixth more processor time than several files in parallel.

    >>> decoder_threads(1) is None, decoder_threads(1000)
    (True, 1)
    """
    return None if readers == 1 else max(1, available_cores() // readers)
