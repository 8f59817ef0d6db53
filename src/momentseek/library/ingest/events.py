"""Events from the threads that read files to the one that encodes and writes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from momentseek.library.file_stamp import Stamp
from momentseek.library.files import VideoFile
from momentseek.library.known_files import KnownFile
from momentseek.library.segments import StoredVectors
from momentseek.media.decode import Sampling
from momentseek.media.probe import Probe
from momentseek.media.subtitles.cues import Cue
from momentseek.recognition.encoders.protocol import Pixels


@dataclass(eq=False)
class IngestJob:
    """A video that is being read, shared by both threads; the reader adds ``notes`` until it sends ``VideoEnd``."""

    file: VideoFile
    stamp: Stamp
    hash: str
    probe: Probe
    cues: tuple[Cue, ...]
    subtitles: tuple[str, ...]
    changed: bool = False
    sampling: Sampling = "exact"
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class VideoStart:
    """The start of a video whose frames follow; ``kept`` are vectors and cuts of the parts an earlier run finished."""

    job: IngestJob
    kept: tuple[tuple[StoredVectors, tuple[float, ...]], ...] = ()


@dataclass(frozen=True, eq=False)
class ClipFrames:
    """The frames of a video's next clip: one, or as many as the encoder uses."""

    job: IngestJob
    frames: tuple[Pixels, ...]


@dataclass(frozen=True, eq=False)
class PartEnd:
    """The end of a part of a video: all its frames were sent; ``shots`` are the cuts in it."""

    job: IngestJob
    part: int
    shots: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class VideoEnd:
    """The end of a video: all its frames were sent, and the file has not changed."""

    job: IngestJob
    clips: int
    duration: float


@dataclass(frozen=True, eq=False)
class UnchangedFile:
    """A file that is in the library and has not changed."""

    file: VideoFile


@dataclass(frozen=True, eq=False)
class FileUpdate:
    """A file with the bytes and subtitles of a video in the library, but another path or time."""

    file: VideoFile
    known: KnownFile
    stamp: Stamp
    subtitles: tuple[str, ...]
    moved: bool


@dataclass(frozen=True, eq=False)
class FileCopy:
    """A file with the bytes of a video in the library: its vectors are copied, and the cues are read again.

    ``replaces`` is whether it replaces that video, because the file only moved or its subtitles changed.
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
    """A file that cannot be added; without a stamp the next ``add`` tries it again. A begun ``job`` is given up."""

    file: VideoFile
    reason: str
    stamp: Stamp | None
    job: IngestJob | None = None
    before: bool = False
    """Whether it failed in an earlier run and was not tried again."""


IngestEvent = VideoStart | ClipFrames | PartEnd | VideoEnd | UnchangedFile | FileUpdate | FileCopy | FileFailure


class FileQueue:
    """A queue of files for several threads, which iterate over it: every file goes to one of them, in order.

    No thread gets another file while the queue is ``shut``.

    >>> from pathlib import Path
    >>> files = FileQueue([VideoFile(Path("a.mp4"), "a.mp4"), VideoFile(Path("b.mp4"), "b.mp4")])
    >>> one, other = iter(files), iter(files)
    >>> next(one).name, next(other).name, next(one, None)
    ('a.mp4', 'b.mp4', None)
    """

    def __init__(self, files: Iterable[VideoFile]) -> None:
        self._files = deque(files)
        self._shut = self._ended = False
        self._change = threading.Condition()

    @property
    def shut(self) -> bool:
        """Whether threads that want another file have to wait."""
        return self._shut

    @shut.setter
    def shut(self, shut: bool) -> None:
        with self._change:
            self._shut = shut
            self._change.notify_all()

    def end(self) -> None:
        """Hand out no more files, and wake up waiting threads."""
        with self._change:
            self._ended = True
            self._change.notify_all()

    def __iter__(self) -> Iterator[VideoFile]:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._ended or not self._shut or not self._files)
                if self._ended or not self._files:
                    return
                file = self._files.popleft()
            yield file
