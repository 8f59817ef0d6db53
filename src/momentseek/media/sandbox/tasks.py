"""What the process can be asked to do: each task is a generator of replies, by name, in the order of its work.

A further kind of decoding is one more generator here and one more function in `calls`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.media.cut import write_clip
from momentseek.media.decode import frames
from momentseek.media.glimpses import glimpses
from momentseek.media.preview import preview
from momentseek.media.probe import probe
from momentseek.media.sandbox.wire import FileText, Message, file_of_json
from momentseek.media.shots import ShotDetector
from momentseek.media.sound import SAMPLE_RATE, Samples, sound
from momentseek.media.subtitles import cues_of
from momentseek.media.thumbnails import thumbnail

SECONDS_BETWEEN_SHARES = 0.2
Task = Callable[..., Iterator[Message]]
"""Replies are of the kind ``item``, while the work goes on, and ``end``, once."""


def probe_file(path: FileText) -> Iterator[Message]:
    """What a video file is."""
    found = probe(file_of_json(path))
    rate = [found.rate.numerator, found.rate.denominator]
    yield Message("end", {**asdict(found), "path": str(path), "rate": rate})


def read_frames(path: FileText, shots: bool, **settings: Any) -> Iterator[Message]:
    """Frames as they are decoded; in the end how far that went, what was damaged, and the cuts."""
    detector = ShotDetector() if shots else None
    source = frames(file_of_json(path), spy=None if detector is None else detector.push, **settings)
    last = None
    for frame in source:
        if frame.pixels is last:  # a picture that is shown for long
            yield Message("item", {"time": frame.time, "same": True})
            continue
        last = frame.pixels
        yield Message("item", {"time": frame.time, "shape": list(last.shape)}, last.reshape(-1))
    damage = None if source.damage is None else asdict(source.damage)
    cuts = [] if detector is None else detector.boundaries()
    yield Message("end", {"duration": source.duration, "damage": damage, "shots": cuts})


def read_glimpses(path: FileText, slots: list[list[float]]) -> Iterator[Message]:
    """One frame of each stretch of a video."""
    for frame in glimpses(file_of_json(path), [(start, end) for start, end in slots]):
        yield Message("item", {"time": frame.time, "shape": list(frame.pixels.shape)}, frame.pixels.reshape(-1))
    yield Message("end")


def read_sound(path: FileText) -> Iterator[Message]:
    """Samples, a second or more at a time."""
    waiting: list[Samples] = []
    for samples in sound(file_of_json(path)):
        waiting.append(samples)
        if sum(map(len, waiting)) >= SAMPLE_RATE:
            yield Message("item", payload=np.concatenate(waiting).view(np.uint8))
            waiting = []
    yield Message("end", payload=np.concatenate([*waiting, np.zeros(0, np.float32)]).view(np.uint8))


def read_cues(video: FileText, **settings: Any) -> Iterator[Message]:
    """What is said in a video."""
    found = cues_of(file_of_json(video), **settings)
    cues = [[cue.start, cue.end, cue.text, cue.language] for cue in found.cues]
    yield Message("end", {"cues": cues, "sources": list(found.sources), "problems": list(found.problems)})


def make_thumbnail(path: FileText, **settings: Any) -> Iterator[Message]:
    """A frame as the bytes of a WebP file."""
    yield Message("end", payload=thumbnail(file_of_json(path), **settings))


def cut_clip(path: FileText, clip: str, **settings: Any) -> Iterator[Message]:
    """A clip, written to a file that the asker will rename or delete."""
    yield Message("end", asdict(write_clip(file_of_json(path), Path(clip), **settings)))


def make_preview(path: FileText, out: str) -> Iterator[Message]:
    """How much of a preview is written, now and then."""
    due = 0.0
    for share in preview(file_of_json(path), Path(out)):
        if (now := time.monotonic()) >= due:
            due = now + SECONDS_BETWEEN_SHARES
            yield Message("item", {"share": share})
    yield Message("end")


TASKS: dict[str, Task] = {
    "probe": probe_file,
    "frames": read_frames,
    "glimpses": read_glimpses,
    "sound": read_sound,
    "cues": read_cues,
    "thumbnail": make_thumbnail,
    "cut": cut_clip,
    "preview": make_preview,
}
