"""What an encoder is: a name and a function from texts, or from images too, to unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Pixels = NDArray[np.uint8]
"""An upright RGB image, ``(height, width, 3)``."""


@runtime_checkable
class TextEncoder(Protocol):
    """Turns texts into rows of length 1, so that a dot product of two is their cosine.

    An encoder that also has ``fingerprint: str``, which changes whenever its vectors do (the weights' hash, say),
    can be cached on disk; one without is asked again every time. An encoder may have ``knows(text) -> bool``: whether
    any word of a text means something to it; a search is never sure of what was asked in unknown words.

    >>> class Letters:
    ...     name, dim = "letters", 26
    ...     def encode(self, texts):
    ...         rows = np.array([[t.lower().count(chr(97 + i)) for i in range(26)] for t in texts], np.float32)
    ...         return rows / np.linalg.norm(rows, axis=1, keepdims=True)
    >>> isinstance(Letters(), TextEncoder)
    True
    """

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def dim(self) -> int:
        """Columns of its vectors."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """``(len(texts), dim)``, each row of length 1."""
        ...


@runtime_checkable
class ImageTextEncoder(TextEncoder, Protocol):
    """A text encoder that puts images into the same space: an image and its description have a high dot product."""

    @property
    def short_side(self) -> int:
        """Pixels of the shorter side that its preprocessing asks for; frames need not be decoded larger."""
        ...

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """``(len(images), dim)``, each row of length 1; images may differ in size."""
        ...


@runtime_checkable
class WindowEncoder(ImageTextEncoder, Protocol):
    """An image-text encoder that looks at several frames of a clip together, as encoders of video do.

    A library gives it the frames of each clip, and keeps one vector of them. A single image is a window of one frame.
    """

    @property
    def window_frames(self) -> int:
        """Frames of a clip that it wants, spread evenly over the clip."""
        ...

    def encode_windows(self, windows: Sequence[Sequence[Pixels]]) -> Vectors:
        """``(len(windows), dim)``, each row of length 1: one for the frames of each window, in the order of time.

        A window at the end of a video may have fewer frames than was asked for, and at least one.
        """
        ...


@runtime_checkable
class WordEncoder(TextEncoder, Protocol):
    """A text encoder that also gives a row per word (or piece of one): what a trained model reads queries by."""

    def words(self, texts: Sequence[str]) -> list[Vectors]:
        """A table ``(words, columns)`` for each text; at least one row each."""
        ...

    def tokens(self, text: str) -> list[str]:
        """What the rows of a text's table stand for."""
        ...


def fingerprint(encoder: TextEncoder) -> str | None:
    """What the encoder's vectors depend on, if it says so."""
    value = getattr(encoder, "fingerprint", None)
    return value if isinstance(value, str) and value else None
