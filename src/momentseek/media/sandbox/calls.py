"""Probe, decode and cut videos in another process, with the functions' names from `momentseek.media`.

They raise the same errors, and `MediaError` if the process crashes, makes no progress, or exceeds its memory limit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.errors import MediaError
from momentseek.core.workers import Message
from momentseek.media.container import FilePath
from momentseek.media.cut import Cut
from momentseek.media.cut import cut as cut_video
from momentseek.media.decode import MAX_SHORT_SIDE, Frame, FrameIterator, FrameSettings, Samples, Slot
from momentseek.media.probe import Probe
from momentseek.media.reader import Damage
from momentseek.media.sandbox.process import run_task
from momentseek.media.subtitles.cues import Cue
from momentseek.media.subtitles.find import VideoCues


def probe(path: FilePath) -> Probe:
    """Return the properties of a video file, like `media.probe`."""
    content = _last("probe", path).content
    place = tuple(content["place"]) if content["place"] else None
    return Probe(**{**content, "path": Path(path), "rate": Fraction(*content["rate"]), "place": place})


def cues_of(
    video: FilePath,
    folder: FilePath | None = None,
    languages: Sequence[str] | None = None,
    duration: float | None = None,
    links: bool = True,
) -> VideoCues:
    """Return what is said in a video, like `media.subtitles.cues_of`."""
    place = None if folder is None else os.fspath(folder)
    content = _last(
        "cues", video, folder=place, languages=list(languages or ()), duration=duration, links=links
    ).content
    cues = tuple(Cue(*cue) for cue in content["cues"])
    return VideoCues(cues, tuple(content["sources"]), tuple(content["problems"]))


def thumbnail(path: FilePath, time: float, width: int = 320, quality: int = 75) -> bytes:
    """Return the frame shown at a time as WebP, like `media.thumbnail`."""
    return bytes(_last("thumbnail", path, time=time, width=width, quality=quality).payload)


def cut(path: FilePath, start: float, end: float, out: FilePath, *, exact: bool = True, pad: float = 0.0) -> Cut:
    """Write a part of a video as a clip, like `media.cut`."""

    def write(source: FilePath, clip: Path, **settings: Any) -> Cut:
        return Cut(path=clip, **_last("cut", source, clip=os.path.abspath(clip), **settings).content)

    return cut_video(path, start, end, out, exact=exact, pad=pad, write=write)


def preview(path: FilePath, out: Path) -> Generator[float]:
    """Write a preview of a video and yield the share done, like `media.preview`; closing it stops the work."""
    for message in _items("preview", path, out=os.path.abspath(out)):
        yield float(message.content["share"])


def sparse_frames(path: FilePath, slots: Sequence[Slot], short_side: int = MAX_SHORT_SIDE) -> Generator[Frame]:
    """Yield one frame for each interval of a video, like `media.sparse_frames`; closing it stops the work."""
    for message in _items("sparse_frames", path, slots=[list(slot) for slot in slots], short_side=short_side):
        yield _frame(message, path)


def sound(path: FilePath) -> Generator[Samples]:
    """Yield the samples of a file's sound in blocks of a second or more, like `media.sound`."""
    for message in _items("sound", path):
        yield np.frombuffer(message.payload, np.float32)


def frames(path: FilePath, rate: float, *, shots: bool = False, **settings: Any) -> SandboxFrames:
    """Decode the frames of a video at a constant rate, like `media.frames`; ``shots`` also detects cuts."""
    return SandboxFrames(path, {"shots": shots, **asdict(FrameSettings(rate, **settings))})


class SandboxFrames(FrameIterator):
    """Frames decoded by another process; ``close()`` stops it before the end."""

    def __init__(self, path: FilePath, settings: dict[str, Any]) -> None:
        super().__init__()
        self.path, self._settings = path, settings
        self.shots: tuple[float, ...] = ()
        """Times of the cuts in seconds, if requested."""

    def _run(self) -> Generator[Frame]:
        last: Frame | None = None
        with closing(run_task("frames", self.path, self._settings)) as messages:
            for message in messages:
                content = message.content
                if message.kind == "end":
                    self.duration, self.shots = content["duration"], tuple(content["shots"])
                    self.damage = None if content["damage"] is None else Damage(**content["damage"])
                    return
                same = last is not None and content.get("same") is True
                last = Frame(content["time"], last.pixels) if same and last else _frame(message, self.path)
                yield last


def _frame(message: Message, path: FilePath) -> Frame:
    shape, pixels = tuple(message.content["shape"]), message.payload
    if len(shape) != 3 or shape[2] != 3 or math.prod(shape) != len(pixels):
        raise MediaError(f"{path}: crashes the decoder (it gave half a picture); convert it, or get another copy")
    assert not isinstance(pixels, bytes)
    return Frame(message.content["time"], pixels.reshape(shape))


def _items(task: str, path: FilePath, **settings: Any) -> Generator[Message]:
    """Yield the messages of the process while it does a task."""
    with closing(run_task(task, path, settings)) as messages:
        yield from (message for message in messages if message.kind == "item")


def _last(task: str, path: FilePath, **settings: Any) -> Message:
    """Return the last message of a task that gives one answer."""
    *_, last = run_task(task, path, settings)
    return last
