"""Images made ready for a network, with Pillow."""

from __future__ import annotations

import numpy as np

from momentseek.encoders.protocol import Pixels
from momentseek.errors import MomentseekError
from momentseek.optional import optional_module


def require_image(image: Pixels) -> Pixels:
    """The image, if it is one: ``(height, width, 3)`` of uint8, at least 1×1."""
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise MomentseekError(
            f"an image is {image.dtype} of shape {image.shape}; encoders take upright RGB, uint8 (height, width, 3)"
        )
    return image


def crop_square(image: Pixels, side: int) -> Pixels:
    """The middle square of an image, ``side`` × ``side``; cut out first, so that nothing else is resampled.

    >>> crop_square(np.full((4, 8, 3), 7, np.uint8), 2).shape
    (2, 2, 3)
    """
    height, width = require_image(image).shape[:2]
    short = min(height, width)
    top, left = (height - short) // 2, (width - short) // 2
    middle = image[top : top + short, left : left + short]
    if short == side:
        return middle
    pillow = optional_module("PIL.Image", "search")
    return np.asarray(pillow.fromarray(np.ascontiguousarray(middle)).resize((side, side), pillow.Resampling.BICUBIC))
