"""Whole videos gathered, and made part of the library together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from momentseek.encoders.protocol import TextEncoder, Vectors
from momentseek.library import ledger, segments
from momentseek.library.catalog import Catalog, SegmentRow
from momentseek.library.files import VideoFile
from momentseek.library.ingest.clock import StageTimer
from momentseek.library.ingest.events import FileUpdate
from momentseek.library.merge import merge
from momentseek.library.paths import LibraryPaths
from momentseek.library.rows import StoredVectors, pooled
from momentseek.library.segments import Segment
from momentseek.library.stamp import Stamp
from momentseek.library.video import Video
from momentseek.media.cue import Cue
from momentseek.trained.encoder import TrainedEncoder

TEXTS = 64
"""Cues encoded together."""
MERGE_EVERY = 16
"""Segments of one run after which the small ones are joined."""


@dataclass(frozen=True)
class WritePace:
    """When to write. ``part_clips`` is how much of a long video is kept at a time."""

    rows: int = 50_000
    seconds: float = 10.0
    part_clips: int = 400


@dataclass(frozen=True, eq=False)
class FinishedVideo:
    """A video that only needs to be written."""

    video: Video
    cues: Sequence[Cue]
    subtitles: Sequence[str]
    vision: StoredVectors
    replaces: int | None = None
    """A video at another path that goes."""
    written: Callable[[], None] = lambda: None
    spans: StoredVectors | None = None
    """What a trained model finds spans by, once ``vision`` has become what it finds clips by."""


class SegmentWriter:
    """Gathers what is ready and writes it in one transaction per ``WritePace``.

    First the segments' files, flushed to the disk; then the catalog names them, the videos and their cues at once.
    Killed between, the files are orphans, which the next writer deletes, and the videos are done again.
    """

    def __init__(
        self,
        place: LibraryPaths,
        catalog: Catalog,
        speech: TextEncoder | None,
        clock: StageTimer,
        pace: WritePace,
        model: TrainedEncoder | None = None,
    ) -> None:
        self.place, self.catalog, self.speech, self.clock, self.pace = place, catalog, speech, clock, pace
        self.model = model
        """Puts the frames of a whole video into their context, if the library has one."""
        self.ready: list[FinishedVideo] = []
        self.updates: list[FileUpdate] = []
        self.failures: list[tuple[VideoFile, str, Stamp | None]] = []
        self.since = time.monotonic()
        self.written = 0

    def add(self, ready: FinishedVideo) -> None:
        """A whole video."""
        self.ready.append(ready)

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        if not (self.ready or self.updates or self.failures):
            self.since = time.monotonic()
            return False
        rows_of = self.model.span_rows if self.model is not None else int  # of moments there are many more than clips
        rows = sum(rows_of(len(ready.vision)) for ready in self.ready)
        return rows >= self.pace.rows or time.monotonic() - self.since >= self.pace.seconds

    def flush(self) -> None:
        """Write all that is ready."""
        if not (self.ready or self.updates or self.failures):
            return
        spoken = self._spoken()
        if self.model is not None:
            with self.clock.stage("context"):
                self.ready = [in_context(self.model, *each) for each in zip(self.ready, spoken, strict=True)]
        with self.clock.stage("write"):
            self._write(spoken)
        for ready in self.ready:
            ready.written()
        self.ready, self.updates, self.failures = [], [], []
        self.since = time.monotonic()
        if self.written >= MERGE_EVERY:
            self.join()

    def join(self) -> None:
        """Join small segments, so that there are few however long it takes."""
        with self.clock.stage("write"):
            for stream in segments.STREAMS:
                merge(self.catalog, self.place, stream)
        self.written = 0

    def _spoken(self) -> list[Vectors | None]:
        if self.speech is None:
            return [None] * len(self.ready)
        with self.clock.stage("encode speech"):
            return encoded_cues(self.speech, [ready.cues for ready in self.ready])

    def _write(self, spoken: Sequence[Vectors | None]) -> None:
        first = self.catalog.next_id()
        ids = range(first, first + len(self.ready))
        fresh: list[Segment] = []
        if self.ready:
            fresh += vectors_of(ids, self.ready)
        said = [(id, StoredVectors.of(rows)) for id, rows in zip(ids, spoken, strict=True) if rows is not None]
        if said:
            fresh.append(pooled("speech", [id for id, _ in said], [rows for _, rows in said]))
        rows = [write_segment(self.place, content) for content in fresh]
        self.written += len(rows) > 0
        with self.catalog.changes():
            for id, ready in zip(ids, self.ready, strict=True):
                if ready.replaces is not None:
                    self.catalog.remove_video(ready.replaces)
                self.catalog.insert_video(ready.video, ready.cues, ready.subtitles, id=id)
            for row in rows:
                self.catalog.insert_segment(row)
            for update in self.updates:
                name = update.file.name if update.moved else None
                ledger.update_file(
                    self.catalog, update.known.id, update.file.path, name, update.stamp, update.subtitles
                )
            for file, reason, stamp in self.failures:
                ledger.note_failure(self.catalog, file.path, file.name, reason, stamp)


def in_context(model: TrainedEncoder, ready: FinishedVideo, spoken: Vectors | None) -> FinishedVideo:
    """A video with a trained model's vectors, from those of its frames and cues as they would lie in a library."""
    frames = ready.vision.half.astype(np.float32)
    cues = None if spoken is None else np.asarray(spoken, np.float16).astype(np.float32)
    match, spans = model.clips(frames, [(cue.start, cue.end) for cue in ready.cues], cues)
    return replace(ready, vision=StoredVectors.of(match), spans=StoredVectors.of(spans))


def vectors_of(ids: Sequence[int], ready: Sequence[FinishedVideo]) -> list[Segment]:
    """The segments of some videos' clips."""
    found = [pooled("vision", ids, [one.vision for one in ready])]
    spans = [one.spans for one in ready if one.spans is not None]
    return [*found, pooled("spans", ids, spans)] if spans else found


def write_segment(place: LibraryPaths, content: Segment) -> SegmentRow:
    """Write a segment's file; the row makes it count once it is in the catalog."""
    name = segments.write(place.segments, content)
    return SegmentRow(name, content.stream, len(content.ids), content.rows, int(content.ids[0]))


def encoded_cues(encoder: TextEncoder, cues: Sequence[Sequence[Cue]]) -> list[Vectors | None]:
    """One row per cue for each video; None for a video in which nothing is said."""
    texts = [cue.text for video in cues for cue in video]
    rows = [encoder.encode(texts[at : at + TEXTS]) for at in range(0, len(texts), TEXTS)]
    whole = np.concatenate(rows) if rows else np.empty((0, encoder.dim), np.float32)
    found: list[Vectors | None] = []
    at = 0
    for video in cues:
        found.append(whole[at : at + len(video)] if video else None)
        at += len(video)
    return found
