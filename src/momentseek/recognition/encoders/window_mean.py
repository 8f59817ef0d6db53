"""Several frames of a clip in place of one, with any encoder of images: ``mean:ENCODER``.

The simplest encoder of windows: each frame by itself, and the mean of their vectors. It costs as many times more as it
sees frames, and says what a clip shows more steadily; what happens in what order it cannot tell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.protocol import ImageTextEncoder, Pixels, Vectors, fingerprint

FRAMES = 3
"""Frames of a clip that are averaged by default."""
OFFERED = ("evidence", "knows", "understand")
"""Optional methods of an encoder, which are the same for the mean."""


class WindowMean:
    """An encoder of windows by any encoder of images: the mean of the frames' vectors, of length 1.

    An encoder whose vectors hold more than a place in a space has ``pool(rows)``, which makes one row of several.
    """

    def __init__(self, encoder: ImageTextEncoder, frames: int = FRAMES, name: str | None = None) -> None:
        if frames < 1:
            raise MomentseekError(f"a window of {frames} frames: give at least 1")
        own = fingerprint(encoder)
        self._encoder = encoder
        self.window_frames = frames
        self.name = name or f"mean:{encoder.name}"
        self.dim, self.short_side = encoder.dim, encoder.short_side
        self.fingerprint = None if own is None else hashlib.sha256(f"mean of {frames}\n{own}".encode()).hexdigest()

    def __getattr__(self, name: str) -> Any:
        if name in OFFERED:
            return getattr(self._encoder, name)
        raise AttributeError(name)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row per text, as the encoder gives it."""
        return self._encoder.encode(texts)

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """One row per image, as the encoder gives it."""
        return self._encoder.encode_images(images)

    def encode_windows(self, windows: Sequence[Sequence[Pixels]]) -> Vectors:
        """One row per window."""
        rows = self._encoder.encode_images([image for window in windows for image in window])
        ends = np.cumsum([len(window) for window in windows])
        pool = getattr(self._encoder, "pool", mean_direction)
        parts = np.split(rows, ends[:-1]) if len(windows) else []
        return np.stack([pool(part) for part in parts]) if parts else np.empty((0, self.dim), np.float32)


def mean_direction(rows: Vectors) -> Vectors:
    """The mean of some unit vectors, of length 1; where they cancel each other out, the middle one.

    >>> mean_direction(np.array([[3, 4], [3, 4]]) / 5).tolist()
    [0.6, 0.8]
    """
    mean = rows.mean(axis=0)
    length = float(np.linalg.norm(mean))
    found: Vectors = mean / length if length > 1e-6 else rows[len(rows) // 2]
    return found
