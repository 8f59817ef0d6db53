"""Video, PendingVideo and Failure: what the catalog knows of one file."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from momentseek.media.sampling import Sampling
from momentseek.plain_file import PlainFile


@dataclass(frozen=True)
class Video:
    """A video that is wholly in the library.

    ``id`` is never used again, also not for a changed version of the same file. ``name`` is how people call it: its
    path relative to the folder that was added, or its file name.
    """

    id: int
    path: Path
    name: str
    size: int
    mtime_ns: int
    hash: str
    """Hash of the file's bytes."""
    duration: float
    width: int
    height: int
    rate: Fraction
    codec: str
    clips: int
    cues: int
    shots: tuple[float, ...]
    """Times at which new shots begin, in seconds."""
    added: float
    """When the video was added, in seconds since 1970."""
    notes: tuple[str, ...] = ()
    """What was odd about the file: a broken tail, a subtitle file that could not be read."""
    audio: bool = False
    """Whether the video has sound."""
    sampling: Sampling = "exact"
    """How its pictures were chosen when it was added; encoding it anew chooses the same."""
    changed: bool = False
    """Whether the file has changed since and could not be read then, so that the moments are those of the old file."""

    @property
    def file(self) -> PlainFile:
        """The file that was added, to read from; what is no longer that file is refused, and so are links."""
        return PlainFile(self.path, self.size, self.mtime_ns)


@dataclass(frozen=True)
class PendingVideo:
    """A video that waits for what is done beside its pictures: being heard, or read."""

    id: int
    path: Path
    name: str
    duration: float
    size: int
    mtime_ns: int
    done: float = 0.0
    """Seconds that an earlier run has done."""


@dataclass(frozen=True)
class Failure:
    """A file that could not be added, and why."""

    path: Path
    reason: str
    at: float
    tries: int
