"""Which frames of a video are read: one in the middle of each shot, and one every four seconds of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # what reads frames; a search only asks how far apart they are
    from momentseek.media.glimpses import Slot
    from momentseek.media.picture import Pixels

SLOT_SECONDS = 4.0
"""Longest stretch of a shot of which one frame is read; subtitles in the picture change more often."""
MIN_SLOT_SECONDS = 1.0
"""Shortest stretch: in quicker cuts, shots share a frame."""
STILL_BLOCKS = 24
"""Blocks along each side of a frame whose mean brightness tells whether anything has changed."""
MAX_STILL_DIFFERENCE = 2.0
"""Largest change of a block's brightness, of 255, that is noise: letters that appear change theirs by more."""


def frame_slots(duration: float, cuts: Sequence[float], every: float = SLOT_SECONDS) -> list[Slot]:
    """Stretches of ``every`` seconds at most that cover a video, within its shots.

    >>> frame_slots(10.0, [2.0, 2.3])
    [(0.0, 2.0), (2.0, 6.0), (6.0, 10.0)]
    """
    edges = [0.0]
    least = min(MIN_SLOT_SECONDS, every)
    for cut in sorted(cuts):
        if cut - edges[-1] >= least and duration - cut >= least:
            edges.append(float(cut))
    out: list[Slot] = []
    for start, end in zip(edges, [*edges[1:], duration], strict=True):
        parts = max(1, math.ceil((end - start) / every - 1e-9))
        inner = [start + (end - start) * k / parts for k in range(parts)] + [end]
        out += pairwise(inner)
    return out


def brightness_blocks(pixels: Pixels) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The mean brightness of the blocks of a frame.

    >>> brightness_blocks(np.full((48, 48, 3), 9, np.uint8)).shape
    (24, 24)
    """
    gray = pixels.mean(axis=2, dtype=np.float32)
    rows, columns = (np.linspace(0, side, STILL_BLOCKS + 1).astype(int)[:-1] for side in gray.shape)
    sums = np.add.reduceat(np.add.reduceat(gray, rows, axis=0), columns, axis=1)
    sizes = np.diff([*rows, gray.shape[0]])[:, None] * np.diff([*columns, gray.shape[1]])[None]
    return np.asarray(sums / np.maximum(sizes, 1), np.float32)


def is_still(
    blocks: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
    before: np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None,
) -> bool:
    """Whether a frame shows nothing that the one read last did not show."""
    return before is not None and bool(np.abs(blocks - before).max() <= MAX_STILL_DIFFERENCE)
