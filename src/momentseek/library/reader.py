"""LibraryReader: a library's folder, opened: its catalog, the state of its segments, and its encoders."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import MomentseekError
from momentseek.library import segments
from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.damaged_rows import explain_error
from momentseek.library.database import CAPTIONS, OCR, PICTURES, SOUNDS, SPEECH
from momentseek.library.encoders import LibraryEncoders, second_encoder, vision_spec
from momentseek.library.origin import LibraryOrigin, origin_of
from momentseek.library.paths import LibraryPaths, folder_size
from momentseek.library.segments import Segment
from momentseek.library.timed_text import track_counts
from momentseek.library.video import Failure, Video, is_missing, select_videos

MAX_SNAPSHOT_TRIES = 20
"""How often the state is read again when a writer has replaced its files meanwhile."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The segments that count, mapped into memory, and the videos in them that no longer do.

    It stays as it is while others write: a file that is replaced stays readable for a process that has mapped it.
    """

    vision: tuple[Segment, ...]
    speech: tuple[Segment, ...]
    gone: NDArray[np.int64]
    generation: tuple[int, int]
    spans: tuple[Segment, ...] = ()
    """Segments by which a trained model finds spans; one for each of ``vision``."""
    encoders: tuple[EncoderRow, ...] = ()
    """The encoders that made these vectors; a query must be encoded by the same."""

    def check_sizes(self) -> None:
        """Refuse a snapshot of which a file was cut short since it was mapped."""
        for segment in (*self.vision, *self.speech, *self.spans):
            segment.check_size()


def take_snapshot(catalog: Catalog, folder: Path) -> Snapshot:
    """The segments that count now. Their files are opened after the catalog was read; if a writer has deleted one in
    between, the catalog is read again.
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
    """Number of videos of which something could not be used: a subtitle file, a broken tail."""
    missing: int
    """Number of videos whose file is not where it was."""
    changed: int
    """Number of videos whose file has changed and cannot be read now; their old moments are still found."""
    gone: int
    """Number of removed videos whose vectors still take space."""
    segments: int
    size: int
    clip_seconds: float
    encoders: tuple[EncoderRow, ...]
    unfinished: bool
    """Whether an ``add`` is running, or was interrupted."""
    heard: int
    """Number of videos in which a recogniser listened for speech."""
    heard_seconds: float
    unheard: int
    """Number of videos with sound and without cues in which nobody has listened yet."""
    unhearable: int
    """Number of videos whose sound could not be heard."""
    read: int
    """Number of videos in which a reader looked for writing."""
    read_seconds: float
    lines: int
    """Number of lines that were read in them."""
    unread: int
    """Number of videos in which nobody has looked for writing yet."""
    unreadable: int
    """Number of videos whose pictures could not be read."""
    second_encoder: str
    """What people call the second of the library's two encoders; empty if it has one."""
    seen: int
    """Number of videos whose pictures it has seen."""
    seen_seconds: float
    unseen: int
    """Number of videos that wait for it."""
    unseeable: int
    """Number of videos whose pictures it could not see."""
    described: int
    """Number of videos that a model has described scene by scene."""
    described_seconds: float
    captions: int
    """Number of scenes that it described."""
    undescribed: int
    """Number of videos that no model has described to their end."""
    undescribable: int
    """Number of videos whose scenes could not be described."""
    listened: int
    """Number of videos in which a detector listened for sounds other than speech."""
    listened_seconds: float
    sounds: int
    """Number of sounds that it heard in them."""
    unlistened: int
    """Number of videos with sound in which no detector has listened yet."""
    unlistenable: int
    """Number of videos in which it could not."""
    reencoding: str | None
    """The spec of the encoder for which vectors are being made again; None if none is."""


def count_library(catalog: Catalog, paths: LibraryPaths) -> Status:
    """Count what a library holds."""
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
"""Length of a clip of a library that is made without naming another."""


class LibraryReader:
    """A library that is open for reading; others may write to it meanwhile."""

    def __init__(self, path: Path, catalog: Catalog) -> None:
        self.path = path
        self.paths = LibraryPaths(path)
        self.catalog = catalog
        self.encoders = LibraryEncoders(catalog, self.paths)
        self._snapshot: Snapshot | None = None
        self.origin: LibraryOrigin | None = origin_of(path)
        """Where the library is kept, if this folder is a copy; None if it is not."""

    def close(self) -> None:
        """Let go of the library's files."""
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
        """The segments that count now, and the ids of removed videos in them; the same object until that changes."""
        if self.origin is not None:
            self.origin.freshen()
        if self._snapshot is None or self._snapshot.generation != self.catalog.state():
            if self.origin is not None:
                self.origin.bring_vectors(lambda: [row.name for row in self.catalog.segments()])
            self._snapshot = take_snapshot(self.catalog, self.paths.segments)
            self.encoders.forget_others(self._snapshot.encoders)
        self._snapshot.check_sizes()
        return self._snapshot

    def videos(self) -> list[Video]:
        """All videos of the library, by id."""
        return self.catalog.videos()

    def failures(self) -> list[Failure]:
        """Files that could not be added, by path."""
        return self.catalog.failures()

    def matching(self, patterns: Iterable[str | os.PathLike[str]], *, missing: bool = False) -> list[Video]:
        """Videos by path, by a folder they lie in, or by a glob for their name; with ``missing``, also those whose
        file is not there. A pattern that matches nothing is refused.
        """
        ids = select_videos(self.catalog.places, [os.fspath(pattern) for pattern in patterns], missing)
        return self.catalog.videos(ids) if ids else []

    def status(self) -> Status:
        """Counts of what the library holds."""
        found = count_library(self.catalog, self.paths)
        return found if self.origin is None else replace(found, size=self.origin.size())

    @property
    def clip_seconds(self) -> float:
        """Length of the library's clips, in seconds."""
        return float(self.catalog.get("clip_seconds", CLIP_SECONDS))
