"""The decoding process and its tasks: ``python -m momentseek.media.sandbox.worker GIGABYTES EFFORT [device]``.

It communicates on stdin and stdout, and exits when stdin closes, so that it never outlives the program that started
it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.pinned_file import PinnedFile
from momentseek.core.workers import Message, Task, serve
from momentseek.media.container import DecodingBudget, on_heartbeat, set_budget
from momentseek.media.cut import preview, write_clip
from momentseek.media.decode import SAMPLE_RATE, Frame, Samples, frames, sound, sparse_frames, thumbnail
from momentseek.media.probe import probe
from momentseek.media.sandbox.process import FileText, SandboxLimits, file_of_json
from momentseek.media.shots import ShotDetector
from momentseek.media.subtitles.find import cues_of

SECONDS_BETWEEN_SHARES = 0.2
File = Path | PinnedFile


def probe_file(path: File) -> Iterator[Message]:
    """Send the properties of a video file."""
    found = probe(path)
    rate = [found.rate.numerator, found.rate.denominator]
    yield Message("end", {**asdict(found), "path": str(path), "rate": rate})


def read_frames(path: File, shots: bool, **settings: Any) -> Iterator[Message]:
    """Send frames as they are decoded, then how far decoding went, what was damaged, and the cuts."""
    detector = ShotDetector() if shots else None
    source = frames(path, on_picture=None if detector is None else detector.push, **settings)
    last = None
    for frame in source:
        if frame.pixels is last:  # a picture that spans several ticks
            yield Message("item", {"time": frame.time, "same": True})
        else:
            yield _frame_message(frame)
        last = frame.pixels
    damage = None if source.damage is None else asdict(source.damage)
    cuts = [] if detector is None else detector.boundaries()
    yield Message("end", {"duration": source.duration, "damage": damage, "shots": cuts})


def read_sparse_frames(path: File, slots: list[list[float]], short_side: int) -> Iterator[Message]:
    """Send one frame for each interval of a video."""
    yield from map(_frame_message, sparse_frames(path, [(start, end) for start, end in slots], short_side))
    yield Message("end")


def _frame_message(frame: Frame) -> Message:
    return Message("item", {"time": frame.time, "shape": list(frame.pixels.shape)}, frame.pixels.reshape(-1))


def read_sound(path: File) -> Iterator[Message]:
    """Send samples, a second or more at a time."""
    waiting: list[Samples] = []
    for samples in sound(path):
        waiting.append(samples)
        if sum(map(len, waiting)) >= SAMPLE_RATE:
            yield Message("item", payload=np.concatenate(waiting).view(np.uint8))
            waiting = []
    if waiting:
        yield Message("item", payload=np.concatenate(waiting).view(np.uint8))
    yield Message("end")


def read_cues(path: File, **settings: Any) -> Iterator[Message]:
    """Send what is said in a video."""
    found = cues_of(path, **settings)
    cues = [[cue.start, cue.end, cue.text, cue.language] for cue in found.cues]
    yield Message("end", {"cues": cues, "sources": list(found.sources), "problems": list(found.problems)})


def make_thumbnail(path: File, **settings: Any) -> Iterator[Message]:
    """Send a frame as WebP."""
    yield Message("end", payload=thumbnail(path, **settings))


def cut_clip(path: File, clip: str, **settings: Any) -> Iterator[Message]:
    """Write a clip to a file, which the caller renames or deletes."""
    made = asdict(write_clip(path, Path(clip), **settings))
    del made["path"]
    yield Message("end", made)


def make_preview(path: File, out: str) -> Iterator[Message]:
    """Write a preview and send the share done."""
    due = 0.0
    for share in preview(path, Path(out)):
        if (now := time.monotonic()) >= due:
            due = now + SECONDS_BETWEEN_SHARES
            yield Message("item", {"share": share})
    yield Message("end")


TASKS: dict[str, Task] = {
    "probe": probe_file,
    "frames": read_frames,
    "sparse_frames": read_sparse_frames,
    "sound": read_sound,
    "cues": read_cues,
    "thumbnail": make_thumbnail,
    "cut": cut_clip,
    "preview": make_preview,
}


def _do_task(effort: float, task: Task, path: FileText, **settings: Any) -> Iterator[Message]:
    set_budget(DecodingBudget(effort))
    return task(file_of_json(path), **settings)


def main(gigabytes: float, effort: float, device: bool) -> None:
    """Run tasks one after another until stdin closes."""

    def load(beat: Callable[[], None]) -> dict[str, Task]:
        with suppress(ImportError):
            import av  # noqa: F401
        SandboxLimits(gigabytes, device=device).enforce()
        on_heartbeat(beat)
        return {name: partial(_do_task, effort, task) for name, task in TASKS.items()}

    serve(load)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), "device" in sys.argv[3:])
