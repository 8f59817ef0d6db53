"""What an encoder is: a name and a function from texts, or from images too, to unit vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Pixels = NDArray[np.uint8]
"""An upright RGB image, ``(height, width, 3)``."""


@dataclass(frozen=True)
class Understanding:
    """What encoders of pictures make of the words of a text."""

    encoders: tuple[str, ...] = ()
    """Names of the encoders that were asked."""
    labels: tuple[str, ...] = ()
    """Nouns that stand for labels of a classifier."""
    words: tuple[str, ...] = ()
    """Words and names that have a vector of their own."""
    guessed: tuple[str, ...] = ()
    """Words that are read by words like them."""
    unknown: tuple[str, ...] = ()
    """Words that mean nothing."""
    suggestions: Mapping[str, str] = field(default_factory=dict)
    """For unknown words, a known one that is spelt nearly so."""
    missing: tuple[str, ...] = ()
    """Models that are not downloaded, without which words are read less well."""

    @property
    def unfamiliar(self) -> tuple[str, ...]:
        """Words at which the encoders can only guess."""
        return (*self.guessed, *self.unknown)

    def join(self, other: Understanding) -> Understanding:
        """What two encoders make of the same text together: what one knows is known."""
        known = {word for one in (self, other) for name in (*one.labels, *one.words) for word in name.split()}
        guessed = [word for word in _unique(self.guessed, other.guessed) if word not in known]
        unknown = [word for word in _unique(self.unknown, other.unknown) if word not in known and word not in guessed]
        return Understanding(
            _unique(self.encoders, other.encoders),
            _unique(self.labels, other.labels),
            _unique(self.words, other.words),
            tuple(guessed),
            tuple(unknown),
            {word: near for one in (self, other) for word, near in one.suggestions.items() if word in unknown},
            _unique(self.missing, other.missing),
        )


def _unique(*parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for part in parts for word in part))


@runtime_checkable
class TextEncoder(Protocol):
    """Turns texts into rows of length 1, so that a dot product of two is their cosine.

    An encoder that also has ``fingerprint: str``, which changes whenever its vectors do (the weights' hash, say),
    can be cached on disk; one without is asked again every time. An encoder may have ``knows(text) -> bool``: whether
    any word of a text means something to it; a search is never sure of what was asked in unknown words. And it may have
    ``understand(text) -> Understanding``, which says more.

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
