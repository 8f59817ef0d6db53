"""Status: what a library holds, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from momentseek.library.catalog import Catalog, EncoderRow
from momentseek.library.database import CAPTIONS, OCR, SPEECH
from momentseek.library.paths import LibraryPaths, folder_size
from momentseek.library.timed_text import track_counts
from momentseek.library.video import is_missing


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
    described: int
    """Number of videos that a model has described scene by scene."""
    described_seconds: float
    captions: int
    """Number of scenes that it described."""
    undescribed: int
    """Number of videos that no model has described to their end."""
    undescribable: int
    """Number of videos whose scenes could not be described."""
    reencoding: str | None
    """The spec of the encoder for which vectors are being made anew; None if none is."""


def status(catalog: Catalog, paths: LibraryPaths) -> Status:
    """Count what a library holds."""
    with catalog.view():
        totals = catalog.totals()
        encoders = [catalog.encoder(stream) for stream in ("vision", "speech")]
        pending = catalog.get("reencoding")
        heard, read, described = (track_counts(catalog, kind) for kind in (SPEECH, OCR, CAPTIONS))
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
            described=described.done,
            described_seconds=described.seconds,
            captions=described.found,
            undescribed=described.undone,
            undescribable=described.failed,
            reencoding=pending[0] if pending else None,
        )
