"""SegmentWriter: collects finished videos and writes them to the library together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from momentseek.library import known_files, segments
from momentseek.library.catalog import Catalog
from momentseek.library.cue_vectors import encode_cues
from momentseek.library.file_stamp import Stamp
from momentseek.library.files import VideoFile
from momentseek.library.ingest.events import FileUpdate
from momentseek.library.merging import SegmentDamage, merge_segments, store_joined_segment
from momentseek.library.options import WritePace
from momentseek.library.paths import LibraryPaths
from momentseek.library.report import StageTimer
from momentseek.library.segments import Segment, StoredVectors, segment_of
from momentseek.library.timed_text import copy_tracks
from momentseek.library.video import Video
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.fused import FusedEncoder
from momentseek.recognition.encoders.protocol import TextEncoder, Vectors
from momentseek.recognition.exported.encoder import TrainedEncoder

SEGMENTS_BETWEEN_MERGES = 16
"""Number of segments that one command writes before the small ones are joined."""


@dataclass(frozen=True, eq=False)
class FinishedVideo:
    """A video that is encoded and only needs to be written."""

    video: Video
    cues: Sequence[Cue]
    subtitles: Sequence[str]
    vision: StoredVectors
    replaces: int | None = None
    """The id of a video at another path that is removed in favour of this one."""
    on_written: Callable[[], None] = lambda: None
    """Called once the video is in the library."""
    spans: StoredVectors | None = None
    """A trained model's vectors for finding spans; ``vision`` then holds those for finding clips."""


class SegmentWriter:
    """Collects finished videos and writes them in transactions, at a ``WritePace``.

    First the files of segments are flushed to the disk; then one transaction adds them, the videos and their cues to
    the catalog. If the process is killed in between, the files are orphans, which the next writer deletes, and the
    videos are processed again.
    """

    def __init__(
        self,
        paths: LibraryPaths,
        catalog: Catalog,
        speech: TextEncoder | None,
        timer: StageTimer,
        pace: WritePace,
        model: TrainedEncoder | None = None,
        fused: FusedEncoder | None = None,
    ) -> None:
        self.paths, self.catalog, self.speech, self.timer, self.pace = paths, catalog, speech, timer, pace
        self.model = model
        """The trained model, which puts the frames of a whole video into context, if the library has one."""
        self.fused = fused
        """The pair of encoders, whose rows have space for the second, if the library has two."""
        self.ready: list[FinishedVideo] = []
        self.updates: list[FileUpdate] = []
        self.failures: list[tuple[VideoFile, str, Stamp | None]] = []
        self.since = time.monotonic()
        self.written = 0
        self.damages: dict[str, SegmentDamage] = {}
        """Damaged segments, which are not joined with others, by name."""

    def add(self, ready: FinishedVideo) -> None:
        """Queue a finished video for the next ``flush``."""
        self.ready.append(ready)

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        if not (self.ready or self.updates or self.failures):
            self.since = time.monotonic()
            return False
        rows_of = self.model.span_rows if self.model is not None else int  # there are many more moments than clips
        rows = sum(rows_of(len(ready.vision)) for ready in self.ready)
        return rows >= self.pace.rows or time.monotonic() - self.since >= self.pace.seconds

    def flush(self) -> None:
        """Write everything that was collected."""
        if not (self.ready or self.updates or self.failures):
            return
        spoken = self._encode_speech()
        if self.model is not None:
            with self.timer.stage("context"):
                self.ready = [put_in_context(self.model, *each) for each in zip(self.ready, spoken, strict=True)]
        if self.fused is not None:
            self.ready = [replace(one, vision=widen_rows(self.fused, one.vision)) for one in self.ready]
        with self.timer.stage("write"):
            self._write(spoken)
        for video in self.ready:
            video.on_written()
        self.ready, self.updates, self.failures = [], [], []
        self.since = time.monotonic()
        if self.written >= SEGMENTS_BETWEEN_MERGES:
            self.merge()

    def merge(self) -> None:
        """Join small segments, so that there are few of them however long the run takes."""
        with self.timer.stage("write"):
            for stream in segments.VECTOR_STREAMS:
                merge_segments(self.catalog, self.paths, stream, self.damages)
        self.written = 0

    def _encode_speech(self) -> list[Vectors | None]:
        if self.speech is None:
            return [None] * len(self.ready)
        with self.timer.stage("encode speech"):
            return encode_cues(self.speech, [ready.cues for ready in self.ready])

    def _write(self, spoken: Sequence[Vectors | None]) -> None:
        ids = self.catalog.next_ids(len(self.ready))
        fresh: list[Segment] = []
        if self.ready:
            fresh += clip_segments(ids, self.ready)
        said = [(id, StoredVectors.of(rows)) for id, rows in zip(ids, spoken, strict=True) if rows is not None]
        if said:
            fresh.append(segment_of("speech", [id for id, _ in said], [rows for _, rows in said]))
        rows = [store_joined_segment(self.paths, content.stream, [content]) for content in fresh]
        self.written += len(rows) > 0
        with self.catalog.changes():
            for id, ready in zip(ids, self.ready, strict=True):
                if ready.video.hash:
                    copy_tracks(self.catalog, ready.video.hash, id)
                if ready.replaces is not None:
                    self.catalog.remove_video(ready.replaces)
                self.catalog.insert_video(ready.video, ready.cues, ready.subtitles, id=id)
            for row in rows:
                self.catalog.insert_segment(row)
            for update in self.updates:
                name = update.file.name if update.moved else None
                known_files.update_file(
                    self.catalog, update.known.id, update.file.path, name, update.stamp, update.subtitles
                )
            for file, reason, stamp in self.failures:
                known_files.note_failure(self.catalog, file.path, file.name, reason, stamp)


def put_in_context(model: TrainedEncoder, ready: FinishedVideo, spoken: Vectors | None) -> FinishedVideo:
    """Replace a video's vectors of frames by those of a trained model, which also uses its cues."""
    if not len(ready.vision):
        return ready
    frames = ready.vision.half.astype(np.float32)
    cues = None if spoken is None else np.asarray(spoken[: len(ready.cues)], np.float16).astype(np.float32)
    match, spans = model.clips(frames, [(cue.start, cue.end) for cue in ready.cues], cues)
    return replace(ready, vision=StoredVectors.of(match), spans=None if spans is None else StoredVectors.of(spans))


def widen_rows(fused: FusedEncoder, rows: StoredVectors) -> StoredVectors:
    """Widen rows of the first of two encoders for the second; rows that are wide already stay as they are."""
    return rows if rows.half.shape[1] == fused.dim or not len(rows) else StoredVectors.of(fused.widen(rows.half))


def clip_segments(ids: Sequence[int], ready: Sequence[FinishedVideo]) -> list[Segment]:
    """Segments in memory of some videos' clips, and of their spans if a model made vectors for them."""
    shown = [(id, one) for id, one in zip(ids, ready, strict=True) if len(one.vision)]  # sound has no pictures
    if not shown:
        return []
    pictured = [id for id, _ in shown]
    found = [segment_of("vision", pictured, [one.vision for _, one in shown])]
    spans = [one.spans for _, one in shown if one.spans is not None]
    return [*found, segment_of("spans", pictured, spans)] if spans else found
