"""Encode several frames of a clip instead of one, with any image encoder: ``mean:ENCODER``.

This is the simplest window encoder: it encodes each frame separately and averages the vectors. It costs as many times
more as it uses frames, and gives a more stable vector of a clip; it ignores the order of events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.protocol import ImageTextEncoder, Pixels, Vectors, fingerprint

FRAMES = 3
"""Default number of frames per clip."""
OFFERED = ("evidence", "knows", "understand")
"""Optional methods of an encoder that also work for the mean."""


class WindowMean:
    """A window encoder from any image encoder: the mean of the frames' vectors, of length 1.

    An encoder whose rows hold more than a vector has ``pool(rows)``, which combines several rows into one.
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
        """Return one row per text, from the encoder."""
        return self._encoder.encode(texts)

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """Return one row per image, from the encoder."""
        return self._encoder.encode_images(images)

    def encode_windows(self, windows: Sequence[Sequence[Pixels]]) -> Vectors:
        """Return one row per window."""
        rows = self._encoder.encode_images([image for window in windows for image in window])
        ends = np.cumsum([len(window) for window in windows])
        pool = getattr(self._encoder, "pool", mean_direction)
        parts = np.split(rows, ends[:-1]) if len(windows) else []
        return np.stack([pool(part) for part in parts]) if parts else np.empty((0, self.dim), np.float32)


def mean_direction(rows: Vectors) -> Vectors:
    """Return the mean of unit vectors, scaled to length 1; if they cancel out, the middle one.

    >>> mean_direction(np.array([[3, 4], [3, 4]]) / 5).tolist()
    [0.6, 0.8]
    """
    mean = rows.mean(axis=0)
    length = float(np.linalg.norm(mean))
    found: Vectors = mean / length if length > 1e-6 else rows[len(rows) // 2]
    return found
