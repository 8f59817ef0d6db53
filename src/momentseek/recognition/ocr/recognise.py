"""Reading a whole file: one frame of each stretch, some stretches at a time, so that a long video can be resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from momentseek.core.workers import JobProcess, JobWords
from momentseek.media.container import FilePath
from momentseek.media.sandbox.calls import sparse_frames
from momentseek.recognition.ocr.lines import (
    SLOT_SECONDS,
    OcrFrame,
    OcrPart,
    brightness_blocks,
    frame_of_json,
    frame_slots,
    is_still,
)
from momentseek.recognition.ocr.models import OcrModel

PART_FRAMES = 16
"""Frames after which what was read is kept: about a minute of video."""


def read_file(
    reader: OcrModel,
    path: FilePath,
    duration: float,
    cuts: Sequence[float],
    begin: float = 0.0,
    every: float = SLOT_SECONDS,
) -> Iterator[OcrPart]:
    """Read a file from ``begin`` on, where an earlier run may have stopped, part by part.

    The first frame of each part is always read, so that a run that was resumed reads the same as one that was not.
    """
    slots = frame_slots(duration, cuts, every)
    parts = [slots[at : at + PART_FRAMES] for at in range(0, len(slots), PART_FRAMES)]
    waiting = [part for part in parts if part[0][0] >= begin - 1e-6]
    pictures = sparse_frames(path, [slot for part in waiting for slot in part])
    try:
        for part in waiting:
            frames: list[OcrFrame] = []
            before = None
            for slot in part:
                frame = next(pictures, None)
                if frame is None:
                    break
                blocks = brightness_blocks(frame.pixels)
                still = is_still(blocks, before)
                lines = None if still else tuple(reader.read(frame.pixels))
                before = before if still else blocks
                frames.append(OcrFrame(*slot, frame.time, lines))
            yield OcrPart(part[-1][1], tuple(frames))
    finally:
        pictures.close()


TIMEOUT_SECONDS = 600.0
"""Longest time without an answer: a part of sixteen frames takes half a minute on a slow processor."""


class OcrProcess(JobProcess):
    """An OCR model in a process of its own, asked for one file at a time; close it, or leave its ``with``."""

    def __init__(self, spec: str, threads: int = 1, timeout: float = TIMEOUT_SECONDS) -> None:
        words = JobWords(f"the OCR model {spec}", "what its pictures show", "cannot be read")
        worker = "momentseek.recognition.ocr.worker"
        super().__init__(worker, [spec, str(threads)], words, threads=threads, timeout=timeout)

    def read(
        self, path: Path, duration: float, cuts: Sequence[float], begin: float = 0.0, every: float = SLOT_SECONDS
    ) -> Iterator[OcrPart]:
        """Read the text of a file from ``begin`` on, part by part; MediaError if it cannot be."""
        for part in self.ask(os.fspath(path), duration=duration, cuts=list(cuts), begin=begin, every=every):
            yield OcrPart(part["done"], tuple(frame_of_json(values) for values in part["frames"]))
