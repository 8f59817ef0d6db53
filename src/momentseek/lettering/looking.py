"""Reading a whole file: one frame of each stretch, some stretches at a time, so that a long video can be resumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from momentseek.lettering.line import ReadFrame, ReadPart
from momentseek.lettering.reader import LineReader
from momentseek.lettering.slots import SLOT_SECONDS, brightness_blocks, frame_slots, is_still
from momentseek.media.container import FilePath
from momentseek.media.sandbox import glimpses

PART_FRAMES = 16
"""Frames after which what was read is kept: about a minute of video."""


def read_file(
    reader: LineReader,
    path: FilePath,
    duration: float,
    cuts: Sequence[float],
    begin: float = 0.0,
    every: float = SLOT_SECONDS,
) -> Iterator[ReadPart]:
    """Read a file from ``begin`` on, where an earlier run may have stopped, part by part.

    The first frame of each part is always read, so that a run that was resumed reads the same as one that was not.
    """
    slots = frame_slots(duration, cuts, every)
    parts = [slots[at : at + PART_FRAMES] for at in range(0, len(slots), PART_FRAMES)]
    waiting = [part for part in parts if part[0][0] >= begin - 1e-6]
    pictures = glimpses(path, [slot for part in waiting for slot in part])
    try:
        for part in waiting:
            frames: list[ReadFrame] = []
            before = None
            for slot in part:
                frame = next(pictures, None)
                if frame is None:
                    break
                blocks = brightness_blocks(frame.pixels)
                still = is_still(blocks, before)
                lines = None if still else tuple(reader.read(frame.pixels))
                before = before if still else blocks
                frames.append(ReadFrame(*slot, frame.time, lines))
            yield ReadPart(part[-1][1], tuple(frames))
    finally:
        pictures.close()
