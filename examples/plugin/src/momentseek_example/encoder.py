"""``hues``: pictures and words as shares of eight colours, an encoder of pictures without weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from momentseek.recognition.encoders.registry import register_image_text

COLOURS = {
    "black": (0, 0, 0), "white": (255, 255, 255), "red": (220, 30, 30), "green": (30, 180, 30), "blue": (30, 30, 220),
    "yellow": (230, 220, 40), "purple": (140, 40, 160), "grey": (128, 128, 128),
}  # fmt: skip
Rows = NDArray[np.float32]


class Hues:
    """A picture is the share of its pixels that are nearest to each colour; a text is the colours that it names."""

    name, dim, short_side, fingerprint = "hues", len(COLOURS), 32, "hues-1"

    def encode(self, texts: Sequence[str]) -> Rows:
        """Rows of length 1; a text without a colour is all of them."""
        named = np.array([[colour in text.lower() for colour in COLOURS] for text in texts], np.float32)
        return unit(np.where(named.any(1, keepdims=True), named, 1.0).astype(np.float32))

    def encode_images(self, images: Sequence[NDArray[np.uint8]]) -> Rows:
        """Rows of length 1, one per RGB picture of any size."""
        known = np.array(list(COLOURS.values()), np.float32)
        rows = []
        for image in images:
            pixels = image[::4, ::4].reshape(-1, 1, 3).astype(np.float32)
            nearest = ((pixels - known) ** 2).sum(2).argmin(1)
            rows.append(np.bincount(nearest, minlength=len(COLOURS)))
        return unit(np.array(rows, np.float32).reshape(-1, len(COLOURS)))


def unit(rows: Rows) -> Rows:
    """Rows of length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


register_image_text("hues", Hues)
