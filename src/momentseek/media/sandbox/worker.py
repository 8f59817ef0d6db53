"""The process that decodes, and what it can be asked: ``python -m momentseek.media.sandbox.worker GIGABYTES [device]``.

It talks on stdin and stdout, and ends when its stdin does, so that it never outlives the program that started it,
however that ended.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from io import RawIOBase
from pathlib import Path
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.media.container import on_heartbeat as listen
from momentseek.media.cut import preview, write_clip
from momentseek.media.decode import frames, sparse_frames, thumbnail
from momentseek.media.probe import probe
from momentseek.media.sandbox.process import SandboxLimits
from momentseek.media.sandbox.wire import FileText, Message, WireError, file_of_json, receive_message, send_message
from momentseek.media.shots import ShotDetector
from momentseek.media.sound import SAMPLE_RATE, Samples, sound
from momentseek.media.subtitles.find import cues_of

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
    for frame in sparse_frames(file_of_json(path), [(start, end) for start, end in slots]):
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
    "sparse_frames": read_glimpses,
    "sound": read_sound,
    "cues": read_cues,
    "thumbnail": make_thumbnail,
    "cut": cut_clip,
    "preview": make_preview,
}


SECONDS_BETWEEN_BEATS = 0.5


def main(gigabytes: float, device: bool) -> None:
    """Do what is asked, one task after another, until there is nobody left to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which then lets go of this process
    asked, replies = _private_pipes()
    with suppress(ImportError):
        import av  # noqa: F401
    SandboxLimits(gigabytes, device=device).enforce()
    inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_hear, args=(asked, inbox), daemon=True).start()
    listen(_Beats(replies).beat)
    send_message(replies, Message("ready"))
    while True:
        _serve(inbox.get(), replies)


def _serve(request: Message, replies: RawIOBase) -> None:
    try:
        for reply in TASKS[request.kind](**request.content):
            send_message(replies, reply)
    except WireError:
        os._exit(0)
    except MomentseekError as e:
        send_message(replies, Message("error", {"type": type(e).__name__, "text": str(e)}))
    except MemoryError:
        send_message(replies, Message("hungry"))
        os._exit(0)  # what is left of the memory may be in pieces
    except Exception as e:
        send_message(replies, Message("odd", {"text": f"{type(e).__name__}: {e}"}))


def _hear(asked: RawIOBase, inbox: queue.SimpleQueue[Message]) -> None:
    """Take requests, in a thread of its own, which also notices in the midst of a task that nobody waits for it."""
    while True:
        try:
            inbox.put(receive_message(asked))
        except WireError:
            os._exit(0)


def _private_pipes() -> tuple[RawIOBase, RawIOBase]:
    """The two pipes, out of the reach of libraries that print."""
    asked, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return open(asked, "rb", buffering=0), open(replies, "wb", buffering=0)


class _Beats:
    """Passes signs of life on, not more often than anybody needs them."""

    def __init__(self, replies: RawIOBase) -> None:
        self.replies = replies
        self.due = 0.0

    def beat(self) -> None:
        now = time.monotonic()
        if now >= self.due:
            self.due = now + SECONDS_BETWEEN_BEATS
            send_message(self.replies, Message("beat"))


if __name__ == "__main__":
    main(float(sys.argv[1]), "device" in sys.argv[2:])
