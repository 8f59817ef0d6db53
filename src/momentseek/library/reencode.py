"""Making all vectors anew with another encoder, while the old ones go on serving."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from momentseek.encoders.protocol import Vectors
from momentseek.errors import MomentseekError
from momentseek.library import encoding, segments
from momentseek.library.catalog import EncoderRow
from momentseek.library.files import VideoFile
from momentseek.library.ingest.clock import StageTimer
from momentseek.library.ingest.reader import ReadSettings
from momentseek.library.ingest.report import AddInterrupted, AddReport, ShowIngest
from momentseek.library.ingest.run import IngestRun
from momentseek.library.ingest.speech import speech_rows
from momentseek.library.ingest.writer import FinishedVideo, SegmentWriter, vectors_of
from momentseek.library.merge import joined_row, merge
from momentseek.library.stamp import shown
from momentseek.library.verify import NEW
from momentseek.tables import count
from momentseek.trained.encoder import TrainedEncoder

if TYPE_CHECKING:
    from momentseek.library.store import LibraryStore

SETTING = "reencoding"
CLIPS = ("vision", "spans")
"""The streams that an encoder of clips makes."""


class NewVectors(SegmentWriter):
    """Writes vectors of videos that are there, as a stream of its own that no search reads."""

    def __init__(
        self, library: LibraryStore, ids: dict[bytes, int], clock: StageTimer, model: TrainedEncoder | None
    ) -> None:
        speech = encoding.speech_encoder() if model is not None else None
        super().__init__(library.place, library.catalog, speech, clock, library.pace, model)
        self.ids = ids

    def add(self, ready: FinishedVideo) -> None:
        """A whole video; a model reads what is said in it, which this run leaves as it is."""
        if self.model is not None:
            ready = replace(ready, cues=self.catalog.cues(self.ids[bytes(ready.video.path)]))
        super().add(ready)

    def _write(self, spoken: Sequence[Vectors | None]) -> None:
        if not self.ready:
            return
        ids = [self.ids[bytes(ready.video.path)] for ready in self.ready]
        rows = [joined_row(self.place, part.stream + NEW, [part]) for part in vectors_of(ids, self.ready)]
        with self.catalog.changes():
            for row in rows:
                self.catalog.insert_segment(row)


def reencode(library: LibraryStore, spec: str, progress: ShowIngest | None = None) -> AddReport:
    """Make every video's vectors by the encoder ``spec``, then switch to them in one transaction.

    Stopped at any instant, the old vectors are what counts and the next call goes on. Nothing is lost: if a file is
    not there or cannot be read, the switch is refused. The caller holds the lock.
    """
    catalog = library.catalog
    encoding.check_model(spec, library.clip_seconds)
    spec = encoding.adopted(spec, library.path)
    encoder = encoding.load(spec, library.path)
    model = encoder if isinstance(encoder, TrainedEncoder) else None
    frames = encoder if model is None else model.frames
    row = encoding.row_of("vision", spec, encoder)
    begun = time.monotonic()
    library.place.drop_orphans(catalog)
    report = AddReport(interrupted_before=_continue(library, row))
    videos = catalog.videos()
    if missing := [video for video in videos if not video.path.is_file()]:
        raise MomentseekError(
            f"{count(len(missing), 'file')} of this library cannot be read ({shown(missing[0].path)}, …); bring them "
            f"back, or take them out: momentseek remove --missing"
        )
    done = _done(library)
    report.unchanged = sum(video.id in done for video in videos)
    files = [VideoFile(video.path, video.name, video.size) for video in videos if video.id not in done]
    clock = StageTimer()
    pool = NewVectors(library, {bytes(video.path): video.id for video in videos}, clock, model)
    plan = ReadSettings(
        library.path, encoding.row_of("vision", "", frames).fingerprint, frames.dim, frames.short_side,
        library.clip_seconds,
        library.pace.part_clips, again=True,
    )  # fmt: skip
    run = IngestRun(files, plan, frames, pool, lambda _: None, report, progress)
    report.stages = clock.seconds
    try:
        run.go()
    except KeyboardInterrupt:
        raise AddInterrupted(report) from None
    finally:
        report.elapsed = time.monotonic() - begun
    if report.failed:
        raise MomentseekError(
            f"{count(len(report.failed), 'video')} could not be encoded anew ({shown(report.failed[0].path)}: "
            f"{report.failed[0].reason}); the old vectors stay in use. Mend or remove them and run this again"
        )
    _switch(library, row, model)
    return report


def _continue(library: LibraryStore, row: EncoderRow) -> bool:
    """Whether vectors of the same encoder are there from an earlier run; those of another are dropped."""
    catalog = library.catalog
    pending = bool(catalog.get(SETTING) == [row.spec, row.fingerprint])
    with catalog.changes():
        if not pending:
            for stream in CLIPS:
                catalog.run("DELETE FROM segments WHERE stream = ?", (stream + NEW,))
        catalog.set(SETTING, [row.spec, row.fingerprint])
    return pending


def _done(library: LibraryStore) -> set[int]:
    rows = library.catalog.segments("vision" + NEW)
    return {int(id) for row in rows for id in segments.read(library.place.segments, row.name).ids}


def _switch(library: LibraryStore, row: EncoderRow, model: TrainedEncoder | None) -> None:
    """The new vectors count from now on, and the old ones no longer."""
    catalog, place = library.catalog, library.place
    old = [segment for stream in CLIPS for segment in catalog.segments(stream)]
    speech = encoding.speech_encoder()
    said = None if speech is None else encoding.row_of("speech", encoding.SPEECH, speech)
    anew = [] if speech is None or said == catalog.encoder("speech") else speech_rows(library, speech)
    if anew:
        old += catalog.segments("speech")
    clips = _clips(library)
    with catalog.changes():
        for segment in old:
            catalog.remove_segment(segment.name)
        for stream in CLIPS:
            catalog.run("UPDATE segments SET stream = ? WHERE stream = ?", (stream, stream + NEW))
        for id, rows in clips:
            catalog.run("UPDATE videos SET clips = ? WHERE id = ? AND clips != ?", (rows, id, rows))
        catalog.set_encoder(row)
        catalog.run("DELETE FROM encoders WHERE stream = 'spans'")
        if model is not None:
            catalog.set_encoder(encoding.spans_row(row.spec, model))
        if said is not None:
            catalog.set_encoder(said)
        for segment in anew:
            catalog.insert_segment(segment)
        catalog.run("DELETE FROM settings WHERE key = ?", (SETTING,))
    for segment in old:
        with suppress(OSError):
            (place.segments / f"{segment.name}{segments.SUFFIX}").unlink()
    for stream in CLIPS:
        merge(catalog, place, stream)


def _clips(library: LibraryStore) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for row in library.catalog.segments("vision" + NEW):
        content = segments.read(library.place.segments, row.name)
        found += zip(content.ids.tolist(), np.diff(content.offsets).tolist(), strict=True)
    return found
