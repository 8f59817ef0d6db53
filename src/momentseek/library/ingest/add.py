"""Add files to a library; the caller is its only writer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.library.cue_vectors import PASSAGES_SETTING, fill_speech
from momentseek.library.encoders import encoder_row, spans_row, vision_spec
from momentseek.library.file_stamp import path_text
from momentseek.library.files import FoundFiles, VideoFile
from momentseek.library.ingest.decoding import ReadSettings, decoder_threads, reader_count
from momentseek.library.ingest.run import IngestRun
from momentseek.library.ingest.writer import SegmentWriter
from momentseek.library.kept_pictures import drop_unwanted_pictures
from momentseek.library.merging import DamagedVectorsError, SegmentDamage, damage_message, proven_videos
from momentseek.library.options import AddOptions
from momentseek.library.reader import LibraryReader
from momentseek.library.report import AddInterrupted, AddReport, IngestNote, ShowIngest, StageTimer
from momentseek.library.scan.kernels import MIN_PLANNED_ROWS
from momentseek.library.segments import StoredVectors, locate
from momentseek.library.tracks.background import PassRequest, TrackPass, finish_passes
from momentseek.library.tracks.captions import CaptionPass, open_scene_captioner
from momentseek.library.tracks.ocr import OcrPass
from momentseek.library.tracks.second_pass import SecondPass, not_ready
from momentseek.library.tracks.sounds import SoundPass
from momentseek.library.tracks.speech import TranscriptionPass
from momentseek.library.video import Failure, Video
from momentseek.library.video_parts import drop_old_parts

ADDING_SETTING = "adding"
"""The catalog's setting that exists while an ``add`` runs, and after it was killed."""

PASS_THREADS = 1
"""Number of threads of each background process."""


def add_files(
    library: LibraryReader, found: FoundFiles, options: AddOptions, progress: ShowIngest | None = None
) -> AddReport:
    """Add the files found to a library. The caller holds its lock."""
    catalog, encoders = library.catalog, library.encoders
    report = AddReport(interrupted_before=catalog.get(ADDING_SETTING) is not None)
    begun = time.monotonic()
    if report.interrupted_before and progress is not None:
        progress(IngestNote("resumed", None, "the last add was interrupted; continuing from there"))
    library.paths.drop_orphans(catalog)
    drop_old_parts(library.path)
    drop_unwanted_pictures(catalog)
    model = encoders.model
    fused = encoders.fused
    encoder = model.frames if model is not None else encoders.vision if fused is None else fused.first
    timer = StageTimer()
    _begin(library, timer, report)
    writer = SegmentWriter(library.paths, catalog, encoders.speech, timer, options.pace, model, fused)
    for path, reason in found.unusable:
        _report_unusable(writer, report, progress, path, reason)
    readers = reader_count(len(found.files), options.jobs)
    settings = ReadSettings(
        library.path,
        library.clip_seconds,
        encoder,
        options,
        decoder_threads(readers),
        in_context=model is not None,
        second=fused.second if fused is not None and fused.ready and options.second_pass else None,
    )
    run = IngestRun(found.files, settings, writer, partial(_stored_video, library), report, progress, readers)
    passes = list(_passes(library, options, report, progress, timer))
    try:
        with ExitStack() as stack:
            for one in passes:
                stack.enter_context(one)
            early = [one for one in passes if not one.after_adding]
            for one in early:
                one.refill()
            run.polls = [one.poll for one in early]
            run.go()
            writer.flush()
            writer.merge()
            finish_passes(passes)
        writer.merge()
        if writer.damages:
            report.notes.append(damage_message(catalog, writer.damages.values()))
        with timer.stage("plan"):
            plan_library(library, report)
        with catalog.changes():
            catalog.run("DELETE FROM settings WHERE key = ?", (ADDING_SETTING,))
    except KeyboardInterrupt:
        raise AddInterrupted(_finish(report, begun, timer)) from None
    return _finish(report, begun, timer)


def _passes(
    library: LibraryReader, options: AddOptions, report: AddReport, progress: ShowIngest | None, timer: StageTimer
) -> Iterator[TrackPass]:
    """The passes that run in the background; a model that cannot be used is noted, and only its track is missing."""
    request = PassRequest(library, report, progress)
    makers: list[tuple[str | None, type[TrackPass], Callable[[str], TrackPass]]] = [
        (options.transcriber, TranscriptionPass, lambda m: TranscriptionPass(request, m, PASS_THREADS, timer)),
        (options.sound_detector, SoundPass, lambda m: SoundPass(request, m, PASS_THREADS)),
        (options.ocr_model, OcrPass, lambda m: OcrPass(request, m, threads=PASS_THREADS)),
        (options.captioner, CaptionPass, lambda m: CaptionPass(request, open_scene_captioner(m, library))),
    ]
    for model, kind, make in makers:
        if model is not None:
            try:
                yield make(model)
            except MomentseekError as e:
                report.notes.append(f"{kind.undone}: {e}")
    fused = library.encoders.fused
    if fused is not None and options.second_pass:
        if fused.ready:
            yield SecondPass(request, fused)
        else:
            report.notes.append(not_ready(fused))


def _begin(library: LibraryReader, timer: StageTimer, report: AddReport) -> None:
    """Record the encoders the first time, and that a run has begun."""
    catalog, encoders = library.catalog, library.encoders
    speech, model = encoders.speech, encoders.model
    if model is not None:
        model.check_speech(speech)
    with catalog.changes():
        if catalog.encoder("vision") is None:
            spec = vision_spec(catalog)
            catalog.set_encoder(encoder_row("vision", spec, encoders.vision))
            if model is not None and model.about.curves is None:
                catalog.set_encoder(spans_row(spec, model))
        catalog.set(ADDING_SETTING, {"since": time.time()})
    if speech is None:
        report.notes.append(
            "what is said is searched by its words only: the text encoder minilm is not installed "
            "(momentseek models get minilm)"
        )
    elif catalog.encoder("speech") is None or not catalog.get(PASSAGES_SETTING):
        with timer.stage("encode speech"):
            fill_speech(catalog, library.paths, speech)


def plan_library(library: LibraryReader, report: AddReport) -> None:
    """Build missing plans; an unreadable segment is noted, because it must not undo what was just added."""
    rows = max(sum(row.rows for row in library.catalog.segments(stream)) for stream in ("vision", "speech"))
    if library.origin is not None and rows < MIN_PLANNED_ROWS:  # its vectors need not be fetched for that
        return
    try:
        library.refresh_plans()
    except LibraryError as e:
        report.notes.append(str(e))


def _stored_video(library: LibraryReader, id: int) -> tuple[Video, StoredVectors] | None:
    """A video of the library with its vectors, for copying; raises DamagedVectorsError if they are damaged."""
    videos = library.catalog.videos([id])
    held = library.snapshot().vision
    place = locate(held, id)
    vectors = StoredVectors.find(held, id)
    if videos and not videos[0].clips:  # a recording of sound
        return videos[0], StoredVectors.of(np.empty((0, library.encoders.vision.dim), np.float32))
    if not videos or place is None or vectors is None:
        return None
    part = held[place[0]].part(place[1], place[1] + 1)
    if not proven_videos(part).all():
        raise DamagedVectorsError(library.catalog, [SegmentDamage(part.name, (id,), 1)])
    return videos[0], vectors


def _report_unusable(
    writer: SegmentWriter, report: AddReport, progress: ShowIngest | None, path: Path, text: str
) -> None:
    reason = text.split(": ", 1)[-1]
    writer.failures.append((VideoFile(path, path_text(path.name)), reason, None))
    report.failed.append(Failure(path, reason, time.time(), 1))
    if progress is not None:
        progress(IngestNote("odd", path, text))


def _finish(report: AddReport, begun: float, timer: StageTimer) -> AddReport:
    report.elapsed = time.monotonic() - begun
    report.stages = dict(timer.seconds)
    return report
