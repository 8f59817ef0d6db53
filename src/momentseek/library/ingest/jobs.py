"""What passes from the thread that reads files to the one that encodes and writes."""

from __future__ import annotations

from dataclasses import dataclass, field

from momentseek.encoders.protocol import Pixels
from momentseek.library.files import Found
from momentseek.library.ledger import Known
from momentseek.library.rows import Rows
from momentseek.library.stamp import Stamp
from momentseek.media.cue import Cue
from momentseek.media.probe import Probe


@dataclass(eq=False)
class Job:
    """A video being read. Both threads hold it; the reader fills ``notes`` before it says ``Ended``."""

    file: Found
    stamp: Stamp
    hash: str
    probe: Probe
    cues: tuple[Cue, ...]
    subtitles: tuple[str, ...]
    changed: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Began:
    """A video's frames follow. ``kept`` are the vectors and cuts of the parts an earlier run had finished."""

    job: Job
    kept: tuple[tuple[Rows, tuple[float, ...]], ...] = ()


@dataclass(frozen=True, eq=False)
class Image:
    """The frame of the next clip."""

    job: Job
    pixels: Pixels


@dataclass(frozen=True, eq=False)
class PartEnded:
    """All frames of a part were given; ``shots`` are the cuts in it."""

    job: Job
    part: int
    shots: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Ended:
    """All frames of a video were given, and the file is still what it was."""

    job: Job
    clips: int
    duration: float


@dataclass(frozen=True, eq=False)
class Same:
    """Nothing to do."""

    file: Found


@dataclass(frozen=True, eq=False)
class Updated:
    """The same bytes and subtitles, but another path or time."""

    file: Found
    known: Known
    stamp: Stamp
    subtitles: tuple[str, ...]
    moved: bool


@dataclass(frozen=True, eq=False)
class Copied:
    """The same bytes as a video that is there: its vectors serve; its cues are read anew.

    ``replaces`` is the video that goes, if the file only moved or its subtitles changed.
    """

    file: Found
    known: Known
    stamp: Stamp
    subtitles: tuple[str, ...]
    cues: tuple[Cue, ...]
    notes: tuple[str, ...]
    replaces: bool


@dataclass(frozen=True, eq=False)
class Failed:
    """It cannot be added; without a stamp the next ``add`` tries it again. ``job`` was begun, if it is given."""

    file: Found
    reason: str
    stamp: Stamp | None
    job: Job | None = None
    before: bool = False
    """It failed in an earlier run already and was not tried again."""


Event = Began | Image | PartEnded | Ended | Same | Updated | Copied | Failed
