"""Reports of an ``add``: its progress, and the result."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from momentseek.core.reports import count
from momentseek.library.file_stamp import path_text
from momentseek.library.paths import clock_text
from momentseek.library.video import Failure


@dataclass(frozen=True)
class IngestStep:
    """The progress of an ingest, reported after every batch and every file."""

    files: int
    """Number of files that are done."""
    of_files: int
    bytes: int
    """Bytes of the files that are done, and of the finished part of the current file."""
    of_bytes: int
    name: str
    """Name of the current file."""
    at: float
    """Seconds of the current file that are encoded."""
    duration: float
    seconds: float
    """Seconds of video encoded in this run."""
    elapsed: float
    encoding: float
    """Seconds since encoding began; 0 before."""
    bytes_encoded: int
    """Bytes of the files that were encoded in this run; the time left is estimated from it."""


@dataclass(frozen=True)
class BackgroundStep:
    """The progress of a background pass (transcription, OCR, descriptions), after all videos were encoded."""

    what: str
    """The kind of work, such as ``hearing``."""
    videos: int
    """Number of videos that are done."""
    of_videos: int
    seconds: float
    """Seconds of video that are done, including earlier runs."""
    of_seconds: float
    fresh: float
    """Seconds of video done in this run; the time left is estimated from it."""
    elapsed: float
    name: str
    """Name of the current video."""


@dataclass(frozen=True)
class IngestNote:
    """A note about a file, or about the whole run, to show at once."""

    kind: Literal["failed", "resumed", "odd", "noted"]
    path: Path | None
    text: str


@dataclass(frozen=True)
class ResumedVideo:
    """A long video that was continued where an earlier run stopped."""

    path: Path
    at: float
    duration: float


@dataclass(frozen=True)
class VideoNote:
    """A video that was added, and a part of it that could not be used, such as a subtitle file or a damaged end."""

    path: Path
    text: str


ShowIngest = Callable[[IngestStep | BackgroundStep | IngestNote], None]


@dataclass
class AddReport:
    """The result of an ``add``. Times are in seconds; ``seconds`` is video time, ``elapsed`` is wall-clock time."""

    added: int = 0
    changed: int = 0
    """Number of files whose content has changed since the last time."""
    refreshed: int = 0
    """Number of videos whose subtitles alone were read again."""
    moved: int = 0
    copied: int = 0
    """Number of files with the same bytes as one in the library, whose vectors were copied."""
    unchanged: int = 0
    failed: list[Failure] = field(default_factory=list)
    failed_before: int = 0
    """Number of files that failed in an earlier run and have not changed since; ``retry`` tries them again."""
    noted: list[VideoNote] = field(default_factory=list)
    resumed: list[ResumedVideo] = field(default_factory=list)
    interrupted_before: bool = False
    """Whether the last ``add`` had been interrupted."""
    heard: int = 0
    """Number of videos that were transcribed because they have no subtitles."""
    heard_seconds: float = 0.0
    read: int = 0
    """Number of videos that were searched for text on screen (OCR)."""
    read_seconds: float = 0.0
    seen: int = 0
    """Number of videos that the second encoder has encoded."""
    seen_seconds: float = 0.0
    pictures: int = 0
    """Number of pictures that the second encoder encoded."""
    described: int = 0
    """Number of videos whose scenes a model described."""
    described_seconds: float = 0.0
    listened: int = 0
    """Number of videos in which sounds other than speech were sought."""
    listened_seconds: float = 0.0
    faces: int = 0
    """Number of videos in which faces were counted."""
    sounds: int = 0
    """Number of sounds that were detected."""
    seconds: float = 0.0
    elapsed: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds spent in each stage; those of the reading thread overlap with those of encoding."""
    notes: list[str] = field(default_factory=list)

    @property
    def in_library(self) -> int:
        """Number of files that are in the library now."""
        return self.added + self.changed + self.refreshed + self.moved + self.copied + self.unchanged

    def __str__(self) -> str:
        """One line.

        >>> print(AddReport(added=2, unchanged=1, seconds=90, elapsed=3))
        2 videos added, 1 unchanged; 00:01:30 of video in 3 s (30 x real time)
        >>> print(AddReport(added=2, noted=[VideoNote(Path("a.mp4"), "a.srt: is empty")]))
        2 videos added (1 of them only in part)
        >>> print(AddReport(added=2, failed=[Failure(Path("b.mp4"), "is empty", 0.0, 1)] * 3, noted=[
        ...     VideoNote(Path("a.mp4"), "a.srt: is empty")]))
        2 videos added (1 of them only in part), 3 failed
        """
        partly = len({noted.path for noted in self.noted})
        counts = [
            (self.added, "added"),
            (self.changed, "changed"),
            (self.moved, "moved"),
            (self.copied, "copied from others with the same content"),
            (self.refreshed, "with new subtitles"),
            (self.unchanged, "unchanged"),
            (len(self.failed), "failed"),
            (self.failed_before, "failed before and not changed since"),
        ]
        said = [(n, what) for n, what in counts if n] or [(0, "added")]
        phrases = [f"{count(said[0][0], 'video')} {said[0][1]}", *(f"{n:,} {what}" for n, what in said[1:])]
        if partly:
            usable = sum(not what.startswith("failed") for _, what in said)
            phrases[max(usable - 1, 0)] += f" ({partly:,} of them only in part)"
        text = ", ".join(phrases)
        if self.heard:
            text += f"; {count(self.heard, 'video')} transcribed ({clock_text(self.heard_seconds)})"
        if self.read:
            text += f"; {count(self.read, 'video')} read by OCR ({clock_text(self.read_seconds)})"
        if self.seen:
            text += f"; {count(self.seen, 'video')} encoded by both encoders ({clock_text(self.seen_seconds)})"
        if self.described:
            text += f"; {count(self.described, 'video')} described ({clock_text(self.described_seconds)})"
        if self.listened:
            text += f"; {count(self.sounds, 'sound')} in {count(self.listened, 'video')}"
        if self.seconds:
            rate = self.seconds / max(self.elapsed, 1e-9)
            text += f"; {clock_text(self.seconds)} of video in {self.elapsed:,.0f} s ({rate:,.0f} x real time)"
        return text

    def as_dict(self) -> dict[str, Any]:
        """The report as values for JSON."""
        return {
            **{k: v for k, v in vars(self).items() if k not in ("failed", "noted", "resumed")},
            "failed": [{"path": path_text(f.path), "reason": f.reason, "tries": f.tries} for f in self.failed],
            "noted": [{"path": path_text(n.path), "text": n.text} for n in self.noted],
            "resumed": [{"path": path_text(r.path), "at": r.at, "duration": r.duration} for r in self.resumed],
        }


class AddInterrupted(KeyboardInterrupt):
    """Ctrl-C during an ``add``; finished work was kept, and ``report`` describes it."""

    def __init__(self, report: AddReport) -> None:
        super().__init__("interrupted")
        self.report = report


class StageTimer:
    """Adds up the seconds that stages take, over all threads.

    >>> timer = StageTimer()
    >>> with timer.stage("encode"):
    ...     pass
    >>> list(timer.seconds)
    ['encode']
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time inside a ``with`` to the stage ``name``."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begun
            with self._lock:
                self.seconds[name] += spent
