"""Encode all videos again with another encoder, while searches use the old vectors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.reports import count
from momentseek.library import encoders, segments
from momentseek.library.catalog import Catalog, EncoderRow, SegmentRow
from momentseek.library.cue_vectors import PASSAGES_SETTING, store_speech
from momentseek.library.database import PICTURES, SPEECH
from momentseek.library.file_stamp import printable
from momentseek.library.files import VideoFile
from momentseek.library.ingest.decoding import ReadSettings, decoder_threads, reader_count
from momentseek.library.ingest.run import IngestRun
from momentseek.library.ingest.writer import FinishedVideo, SegmentWriter, clip_segments, widen_rows
from momentseek.library.merging import (
    SegmentDamage,
    damage_message,
    find_damage,
    merge_segments,
    refuse_damage,
    store_joined_segment,
)
from momentseek.library.options import AddOptions, WritePace
from momentseek.library.reader import LibraryReader
from momentseek.library.report import AddInterrupted, AddReport, ShowIngest, StageTimer
from momentseek.library.segments import StoredVectors, segment_of
from momentseek.library.timed_text import track_counts
from momentseek.library.video import Video
from momentseek.recognition.encoders.fused import FusedEncoder
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.encoder import TrainedEncoder

REENCODING_SETTING = "reencoding"
"""The catalog's setting that names the encoder for which vectors are being made again."""
CLIP_STREAMS = ("vision", "spans")
"""The streams whose vectors the encoder of clips makes."""
ROWS_PER_PIECE = 50_000
"""Number of rows that are widened at a time."""


class ReencodingWriter(SegmentWriter):
    """Writes new vectors of videos in the library, as separate streams that no search reads."""

    def __init__(
        self,
        library: LibraryReader,
        ids: dict[bytes, int],
        timer: StageTimer,
        pace: WritePace,
        model: TrainedEncoder | None,
        fused: FusedEncoder | None,
    ) -> None:
        speech = encoders.installed_speech_encoder() if model is not None else None
        super().__init__(library.paths, library.catalog, speech, timer, pace, model, fused)
        self.ids = ids

    def add(self, ready: FinishedVideo) -> None:
        """Queue a finished video for the next ``flush``; a trained model also gets its cues from the catalog."""
        if self.model is not None:
            ready = replace(ready, cues=self.catalog.own_cues(self.ids[bytes(ready.video.path)], SPEECH))
        super().add(ready)

    def _write(self, spoken: Sequence[Vectors | None]) -> None:
        if not self.ready:
            return
        ids = [self.ids[bytes(ready.video.path)] for ready in self.ready]
        rows = [
            store_joined_segment(self.paths, part.stream + segments.NEW_STREAM_SUFFIX, [part])
            for part in clip_segments(ids, self.ready)
        ]
        with self.catalog.changes():
            for row in rows:
                self.catalog.insert_segment(row)


def reencode_library(
    library: LibraryReader, spec: str, pace: WritePace, progress: ShowIngest | None = None
) -> AddReport:
    """Make the vectors of all videos again with the encoder ``spec``, then switch to them in one transaction.

    If the call is interrupted, the old vectors stay in use, and the next call continues. Nothing is lost: if a file is
    missing or cannot be read, the switch is refused. The caller holds the lock.
    """
    catalog = library.catalog
    encoders.check_model(spec, library.clip_seconds)
    spec = encoders.adopt_encoder(spec, library.path)
    encoder = encoders.load_encoder(spec, library.path)
    model = encoder if isinstance(encoder, TrainedEncoder) else None
    fused = encoder if isinstance(encoder, FusedEncoder) else None
    frames = model.frames if model is not None else encoder if fused is None else fused.first
    row = encoders.encoder_row("vision", spec, encoder)
    begun = time.monotonic()
    library.paths.drop_orphans(catalog)
    if fused is not None and (notes := _keep_first(library, fused, row)) is not None:
        return AddReport(unchanged=len(catalog.videos()), notes=notes, elapsed=time.monotonic() - begun)
    report = AddReport(interrupted_before=_continue(library, row))
    videos = catalog.videos()
    if missing := [video for video in videos if not video.path.is_file()]:
        raise MomentseekError(
            f"{count(len(missing), 'file')} of this library cannot be read ({printable(missing[0].path)}, …); bring "
            f"them back, or take them out: momentseek remove --missing"
        )
    done = _done(library)
    report.unchanged = sum(video.id in done for video in videos)
    timer = StageTimer()
    writer = ReencodingWriter(library, {bytes(video.path): video.id for video in videos}, timer, pace, model, fused)
    if model is not None:
        known = _put_known_in_context(library, model, writer, [video for video in videos if video.id not in done])
        report.changed += len(known)
        done |= known
    files = [VideoFile(video.path, video.name, video.size) for video in videos if video.id not in done]
    readers = reader_count(len(files))
    options = AddOptions(transcriber=None, ocr_model=None, sound_detector=None, sampling="exact", pace=pace)
    second = fused.second if fused is not None and fused.ready else None
    settings = ReadSettings(
        library.path, library.clip_seconds, frames, options, decoder_threads(readers), second=second, again=True
    )
    run = IngestRun(files, settings, writer, lambda _: None, report, progress, readers)
    report.stages = timer.seconds
    try:
        run.go()
    except KeyboardInterrupt:
        raise AddInterrupted(report) from None
    finally:
        report.elapsed = time.monotonic() - begun
    if report.failed:
        raise MomentseekError(
            f"{count(len(report.failed), 'video')} could not be encoded again ({printable(report.failed[0].path)}: "
            f"{report.failed[0].reason}); the old vectors stay in use. Repair or remove them and run this again"
        )
    report.notes += _switch(library, row, model)
    return report


def _put_known_in_context(
    library: LibraryReader, model: TrainedEncoder, writer: SegmentWriter, videos: Sequence[Video]
) -> set[int]:
    """Compute a model's vectors from those of the library, if the model was trained on such; nothing is decoded.

    Videos with damaged rows, or with clips that the second of two encoders has not encoded, must be decoded.
    """
    made_by = library.catalog.encoder("vision")
    if made_by is None or not encoders.is_by(made_by, model.frames):
        return set()
    stored, known = library.snapshot().vision, set()
    for video in videos:
        rows = StoredVectors.find(stored, video.id)
        if rows is None or len(rows) != video.clips or not np.isfinite(rows.half).all():
            continue
        if isinstance(model.frames, FusedEncoder) and not model.frames.is_filled(rows.half).all():
            continue
        writer.add(FinishedVideo(video, (), (), rows))
        known.add(video.id)
        if writer.is_due:
            writer.flush()
    writer.flush()
    return known


def _continue(library: LibraryReader, row: EncoderRow) -> bool:
    """Whether an earlier run has made vectors of the same encoder; those of another encoder are deleted."""
    catalog = library.catalog
    pending = bool(catalog.get(REENCODING_SETTING) == [row.spec, row.fingerprint])
    with catalog.changes():
        if not pending:
            for stream in CLIP_STREAMS:
                catalog.run("DELETE FROM segments WHERE stream = ?", (stream + segments.NEW_STREAM_SUFFIX,))
        catalog.set(REENCODING_SETTING, [row.spec, row.fingerprint])
    return pending


def _done(library: LibraryReader) -> set[int]:
    """Videos whose new vectors exist from an earlier run; vectors in damaged files are made again."""
    catalog = library.catalog
    pending = [row for stream in CLIP_STREAMS for row in catalog.segments(stream + segments.NEW_STREAM_SUFFIX)]
    bad = {(row.first, row.videos) for row in pending if find_damage(library.paths, row, catalog.gone())}
    with catalog.changes():
        for row in pending:
            if (row.first, row.videos) in bad:  # with its counterpart of the other stream
                catalog.remove_segment(row.name)
    rows = catalog.segments("vision" + segments.NEW_STREAM_SUFFIX)
    return {int(id) for row in rows for id in segments.read_segment(library.paths.segments, row.name).ids}


def _switch(library: LibraryReader, row: EncoderRow, model: TrainedEncoder | None) -> list[str]:
    """Switch from the old vectors to the new ones; returns notes."""
    catalog, paths = library.catalog, library.paths
    old = [segment for stream in CLIP_STREAMS for segment in catalog.segments(stream)]
    speech = encoders.installed_speech_encoder()
    said = None if speech is None else encoders.encoder_row("speech", encoders.SPEECH_ENCODER, speech)
    anew = [] if speech is None or said == catalog.encoder("speech") else store_speech(catalog, paths, speech)
    if anew:
        old += catalog.segments("speech")
    clips = _clips(library)
    with catalog.changes():
        for segment in old:
            catalog.remove_segment(segment.name)
        for stream in CLIP_STREAMS:
            catalog.run(
                "UPDATE segments SET stream = ? WHERE stream = ?", (stream, stream + segments.NEW_STREAM_SUFFIX)
            )
        for id, rows in clips:
            if catalog.rows("SELECT 1 FROM videos WHERE id = ? AND clips != ?", (id, rows)):
                catalog.update_video(id, clips=rows)
        _set_encoder(catalog, row)
        if model is not None and model.about.curves is None:
            catalog.set_encoder(encoders.spans_row(row.spec, model))
        if said is not None:
            catalog.set_encoder(said)
        if anew:
            catalog.set(PASSAGES_SETTING, True)
        for segment in anew:
            catalog.insert_segment(segment)
    return _tidy(library, old)


def _set_encoder(catalog: Catalog, row: EncoderRow) -> None:
    """Record the new encoder; a second encoder has not encoded anything yet."""
    catalog.set_encoder(row)
    catalog.run("DELETE FROM encoders WHERE stream = 'spans'")
    for table in ("tracks", "track_parts"):
        catalog.run(f"DELETE FROM {table} WHERE kind = ?", (PICTURES.name,))
    catalog.run("DELETE FROM settings WHERE key = ?", (REENCODING_SETTING,))


def _tidy(library: LibraryReader, old: Sequence[SegmentRow]) -> list[str]:
    """Delete files of old segments, and join the new ones; returns notes."""
    catalog, paths = library.catalog, library.paths
    for segment in old:
        with suppress(OSError):
            (paths.segments / f"{segment.name}{segments.SEGMENT_SUFFIX}").unlink()
    damages: dict[str, SegmentDamage] = {}
    for stream in CLIP_STREAMS:
        merge_segments(catalog, paths, stream, damages)
    return [damage_message(catalog, damages.values())] if damages else []


def _keep_first(library: LibraryReader, fused: FusedEncoder, row: EncoderRow) -> list[str] | None:
    """Keep existing vectors of the first of two encoders; returns notes, or None if they must be made."""
    made = library.catalog.encoder("vision")
    if made == row and track_counts(library.catalog, PICTURES).undone:  # stopped before the second had seen all
        return []
    if made is None or not encoders.is_by(made, fused.first):
        return None
    _continue(library, row)
    return _widen_library(library, fused, row)


def _widen_library(library: LibraryReader, fused: FusedEncoder, row: EncoderRow) -> list[str]:
    """Widen the rows of a library for a second encoder, in one transaction; returns notes.

    Nothing is decoded. Refused if vectors are damaged, because they would get fresh checksums.
    """
    catalog, paths = library.catalog, library.paths
    refuse_damage(catalog, paths, ["vision"])
    old = [segment for stream in CLIP_STREAMS for segment in catalog.segments(stream)]
    fresh = [
        store_joined_segment(paths, "vision", [segment_of("vision", ids, [widen_rows(fused, one) for one in rows])])
        for ids, rows in _pieces(library)
    ]
    with catalog.changes():
        for segment in old:
            catalog.remove_segment(segment.name)
        for segment in fresh:
            catalog.insert_segment(segment)
        _set_encoder(catalog, row)
    return _tidy(library, old)


def _pieces(library: LibraryReader) -> Iterator[tuple[list[int], list[StoredVectors]]]:
    """The ids and rows of all videos, in pieces that fit into memory."""
    ids: list[int] = []
    rows: list[StoredVectors] = []
    for segment in library.catalog.segments("vision"):
        for part in segments.parts_without(
            segments.read_segment(library.paths.segments, segment.name), library.catalog.gone()
        ):
            for at, id in enumerate(part.ids.tolist()):
                one = part.part(at, at + 1)
                ids.append(id)
                rows.append(StoredVectors(one.codes, one.scales, one.half))
                if sum(map(len, rows)) >= ROWS_PER_PIECE:
                    yield ids, rows
                    ids, rows = [], []
    if ids:
        yield ids, rows


def _clips(library: LibraryReader) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for row in library.catalog.segments("vision" + segments.NEW_STREAM_SUFFIX):
        content = segments.read_segment(library.paths.segments, row.name)
        found += zip(content.ids.tolist(), np.diff(content.offsets).tolist(), strict=True)
    return found
