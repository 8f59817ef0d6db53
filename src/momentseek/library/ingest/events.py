"""What passes from the thread that reads files to the one that encodes and writes."""

from __future__ import annotations

from dataclasses import dataclass, field

from momentseek.encoders.protocol import Pixels
from momentseek.library.file_stamp import Stamp
from momentseek.library.files import VideoFile
from momentseek.library.known_files import KnownFile
from momentseek.library.vectors import StoredVectors
from momentseek.media.cue import Cue
from momentseek.media.probe import Probe


@dataclass(eq=False)
class IngestJob:
    """A video being read. Both threads hold it; the reader fills ``notes`` before it says ``VideoEnd``."""

    file: VideoFile
    stamp: Stamp
    hash: str
    probe: Probe
    cues: tuple[Cue, ...]
    subtitles: tuple[str, ...]
    changed: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class VideoStart:
    """A video's frames follow. ``kept`` are the vectors and cuts of the parts an earlier run had finished."""

    job: IngestJob
    kept: tuple[tuple[StoredVectors, tuple[float, ...]], ...] = ()


@dataclass(frozen=True, eq=False)
class ClipFrame:
    """The frame of the next clip."""

    job: IngestJob
    pixels: Pixels


@dataclass(frozen=True, eq=False)
class PartEnd:
    """All frames of a part were given; ``shots`` are the cuts in it."""

    job: IngestJob
    part: int
    shots: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class VideoEnd:
    """All frames of a video were given, and the file is still what it was."""

    job: IngestJob
    clips: int
    duration: float


@dataclass(frozen=True, eq=False)
class UnchangedFile:
    """Nothing to do."""

    file: VideoFile


@dataclass(frozen=True, eq=False)
class FileUpdate:
    """The same bytes and subtitles, but another path or time."""

    file: VideoFile
    known: KnownFile
    stamp: Stamp
    subtitles: tuple[str, ...]
    moved: bool


@dataclass(frozen=True, eq=False)
class FileCopy:
    """The same bytes as a video that is there: its vectors serve; its cues are read anew.

    ``replaces`` is the video that goes, if the file only moved or its subtitles changed.
    """

    file: VideoFile
    known: KnownFile
    stamp: Stamp
    subtitles: tuple[str, ...]
    cues: tuple[Cue, ...]
    notes: tuple[str, ...]
    replaces: bool


@dataclass(frozen=True, eq=False)
class FileFailure:
    """It cannot be added; without a stamp the next ``add`` tries it again. ``job`` was begun, if it is given."""

    file: VideoFile
    reason: str
    stamp: Stamp | None
    job: IngestJob | None = None
    before: bool = False
    """It failed in an earlier run already and was not tried again."""


IngestEvent = VideoStart | ClipFrame | PartEnd | VideoEnd | UnchangedFile | FileUpdate | FileCopy | FileFailure
