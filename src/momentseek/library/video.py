"""Video: what the catalog knows of one file."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path


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
    """Of the file's bytes."""
    duration: float
    width: int
    height: int
    rate: Fraction
    codec: str
    clips: int
    cues: int
    shots: tuple[float, ...]
    """Times of the cuts, in seconds."""
    added: float
    """When it was added, in seconds since 1970."""
    notes: tuple[str, ...] = ()
    """What was odd about it: a broken tail, a subtitle file that could not be read."""
    audio: bool = False
    """Whether there is sound."""
    changed: bool = False
    """Whether its file has changed since and could not be read then: its moments are those of the old one."""


@dataclass(frozen=True)
class Failure:
    """A file that could not be added, and why."""

    path: Path
    reason: str
    at: float
    tries: int
