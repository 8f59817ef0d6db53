"""LibraryReader: an open library, with its catalog, a snapshot of its segments, and its encoders."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.library import segments
from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.damaged_rows import explain_error
from momentseek.library.database import (
    CAPTIONS,
    MAX_CLIP_SECONDS,
    MIN_CLIP_SECONDS,
    OCR,
    PICTURES,
    SOUNDS,
    SPEECH,
    damaged_row,
)
from momentseek.library.encoders import LibraryEncoders, second_encoder, vision_spec
from momentseek.library.origin import LibraryOrigin, origin_of
from momentseek.library.paths import LibraryPaths, folder_size
from momentseek.library.scan.recall import refresh_plan
from momentseek.library.segments import Segment
from momentseek.library.timed_text import track_counts
from momentseek.library.video import Failure, Video, is_missing, select_videos

MAX_SNAPSHOT_TRIES = 20
"""Number of attempts to take a snapshot while a writer replaces files."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The segments in use, mapped into memory, and the ids of removed videos in them.

    It does not change while others write: a replaced file stays readable for a process that has mapped it.
    """

    vision: tuple[Segment, ...]
    speech: tuple[Segment, ...]
    gone: NDArray[np.int64]
    generation: tuple[int, int]
    spans: tuple[Segment, ...] = ()
    """Segments with which a trained model finds spans; one for each of ``vision``."""
    encoders: tuple[EncoderRow, ...] = ()
    """The encoders that made these vectors; a query must be encoded by the same."""

    def check_sizes(self) -> None:
        """Refuse a snapshot if one of its files has been truncated since it was mapped."""
        for segment in (*self.vision, *self.speech, *self.spans):
            segment.check_size()


def take_snapshot(catalog: Catalog, folder: Path) -> Snapshot:
    """Take a snapshot of the segments in use.

    Files are opened after the catalog was read; if a writer has deleted one in between, the catalog is read again.
    """
    for attempt in range(MAX_SNAPSHOT_TRIES):
        generation = catalog.state()
        with catalog.view():
            rows, gone = catalog.segments(), catalog.gone()
            made_by = tuple(row for stream in segments.VECTOR_STREAMS if (row := catalog.encoder(stream)) is not None)
        try:
            opened = {
                stream: tuple(segments.read_segment(folder, row.name) for row in rows if row.stream == stream)
                for stream in segments.VECTOR_STREAMS
            }
        except MomentseekError:
            if attempt + 1 < MAX_SNAPSHOT_TRIES and catalog.state() != generation:
                continue
            raise
        return Snapshot(opened["vision"], opened["speech"], gone, generation, opened["spans"], made_by)
    raise AssertionError


@dataclass(frozen=True)
class Status:
    """Counts of a library; ``size`` is in bytes, ``seconds`` of video."""

    path: Path
    videos: int
    seconds: float
    clips: int
    cues: int
    failures: int
    noted: int
    """Number of videos with an unusable part, such as a subtitle file or a damaged end."""
    missing: int
    """Number of videos whose file is missing."""
    changed: int
    """Number of videos whose file has changed and cannot be read; searches still find the old moments."""
    gone: int
    """Number of removed videos whose vectors still take space."""
    segments: int
    size: int
    clip_seconds: float
    encoders: tuple[EncoderRow, ...]
    unfinished: bool
    """Whether an ``add`` is running, or was interrupted."""
    heard: int
    """Number of videos that were transcribed."""
    heard_seconds: float
    unheard: int
    """Number of videos with sound and without cues that are not transcribed yet."""
    unhearable: int
    """Number of videos that could not be transcribed."""
    read: int
    """Number of videos that were searched for text on screen (OCR)."""
    read_seconds: float
    lines: int
    """Number of lines of text that OCR found."""
    unread: int
    """Number of videos without OCR so far."""
    unreadable: int
    """Number of videos for which OCR failed."""
    second_encoder: str
    """Display name of the second of the library's two encoders; empty if it has only one."""
    seen: int
    """Number of videos that the second encoder has encoded."""
    seen_seconds: float
    unseen: int
    """Number of videos that wait for the second encoder."""
    unseeable: int
    """Number of videos that the second encoder could not encode."""
    described: int
    """Number of videos that a model has described scene by scene."""
    described_seconds: float
    captions: int
    """Number of scenes that were described."""
    undescribed: int
    """Number of videos that no model has described to their end."""
    undescribable: int
    """Number of videos whose scenes could not be described."""
    listened: int
    """Number of videos in which sounds other than speech were sought."""
    listened_seconds: float
    sounds: int
    """Number of sounds that were detected."""
    unlistened: int
    """Number of videos with sound that no sound detector has processed yet."""
    unlistenable: int
    """Number of videos for which sound detection failed."""
    reencoding: str | None
    """The spec of the encoder for which vectors are being made again; None if none is."""


def count_library(catalog: Catalog, paths: LibraryPaths) -> Status:
    """Count the contents of a library."""
    with catalog.view():
        totals = catalog.totals()
        encoders = [catalog.encoder(stream) for stream in ("vision", "speech")]
        pending = catalog.get("reencoding")
        heard, read, described, seen, listened = (
            track_counts(catalog, kind) for kind in (SPEECH, OCR, CAPTIONS, PICTURES, SOUNDS)
        )
        second = second_encoder(vision_spec(catalog))
        return Status(
            path=paths.folder,
            videos=int(totals["videos"]),
            seconds=totals["seconds"],
            clips=int(totals["clips"]),
            cues=int(totals["cues"]),
            failures=int(totals["failures"]),
            noted=catalog.rows("SELECT count(*) FROM videos WHERE notes != '[]'")[0][0],
            missing=sum(is_missing(path) for (path,) in catalog.rows("SELECT path FROM videos")),
            changed=catalog.rows("SELECT count(*) FROM videos WHERE path IN (SELECT path FROM failures)")[0][0],
            gone=len(catalog.gone()),
            segments=len(catalog.segments()),
            size=folder_size(paths.folder),
            clip_seconds=float(catalog.get("clip_seconds", 0.0)),
            encoders=tuple(row for row in encoders if row is not None),
            unfinished=catalog.get("adding") is not None,
            heard=heard.done,
            heard_seconds=heard.seconds,
            unheard=heard.undone,
            unhearable=heard.failed,
            read=read.done,
            read_seconds=read.seconds,
            lines=read.found,
            unread=read.undone,
            unreadable=read.failed,
            seen=seen.done,
            seen_seconds=seen.seconds,
            second_encoder=second,
            unseen=seen.undone if second else 0,
            unseeable=seen.failed,
            described=described.done,
            described_seconds=described.seconds,
            captions=described.found,
            undescribed=described.undone,
            undescribable=described.failed,
            listened=listened.done,
            listened_seconds=listened.seconds,
            sounds=listened.found,
            unlistened=listened.undone,
            unlistenable=listened.failed,
            reencoding=pending[0] if pending else None,
        )


CLIP_SECONDS = 1.5
"""Default length of a new library's clips."""


class LibraryReader:
    """A library that is open for reading; others may write to it meanwhile."""

    def __init__(self, path: Path, catalog: Catalog) -> None:
        self.path = path
        self.paths = LibraryPaths(path)
        self.catalog = catalog
        self.encoders = LibraryEncoders(catalog, self.paths)
        self._snapshot: Snapshot | None = None
        self.origin: LibraryOrigin | None = origin_of(path)
        """The origin of the library if this folder is a copy, otherwise None."""

    def close(self) -> None:
        """Close the library's files."""
        self._snapshot = None
        self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            explain_error(self.catalog, error)
        finally:
            self.close()

    def snapshot(self) -> Snapshot:
        """The segments in use, and the ids of removed videos in them; the same object until the library changes."""
        if self.origin is not None:
            self.origin.freshen()
        if self._snapshot is None or self._snapshot.generation != self.catalog.state():
            if self.origin is not None:
                self.origin.ensure_vectors(lambda: [row.name for row in self.catalog.segments()])
            self._snapshot = take_snapshot(self.catalog, self.paths.segments)
            self.encoders.forget_others(self._snapshot.encoders)
        self._snapshot.check_sizes()
        return self._snapshot

    def refresh_plans(self) -> None:
        """Build the plans for searches that are missing; the caller holds the library's lock."""
        snapshot = self.snapshot()
        spans = False
        with suppress(MomentseekError):  # without its model the library is not searched by spans
            model = self.encoders.model if self.encoders.has_model else None
            spans = model is not None and model.about.curves is not None
        refresh_plan(snapshot.vision, self.paths.plan, spans=spans)
        refresh_plan(snapshot.speech, self.paths.speech_plan)

    def videos(self) -> list[Video]:
        """All videos of the library, by id."""
        return self.catalog.videos()

    def failures(self) -> list[Failure]:
        """Files that could not be added, by path."""
        return self.catalog.failures()

    def matching(self, patterns: Iterable[str | os.PathLike[str]], *, missing: bool = False) -> list[Video]:
        """Select videos by path, by folder, or by a glob for their name.

        With ``missing``, also select those whose file is missing. A pattern that matches nothing is refused.
        """
        ids = select_videos(self.catalog.places, [os.fspath(pattern) for pattern in patterns], missing)
        return self.catalog.videos(ids) if ids else []

    def status(self) -> Status:
        """Count the contents of the library."""
        found = count_library(self.catalog, self.paths)
        return found if self.origin is None else replace(found, size=self.origin.size())

    @property
    def clip_seconds(self) -> float:
        """Length of the library's clips, in seconds."""
        found = self.catalog.get("clip_seconds")
        if not isinstance(found, int | float) or not MIN_CLIP_SECONDS <= found <= MAX_CLIP_SECONDS:
            raise damaged_row(self.catalog.path, "settings", "clip_seconds")
        return float(found)
