"""Protocols of encoders: a name, and functions from texts and images to unit vectors."""

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
    """How image encoders understand the words of a text."""

    encoders: tuple[str, ...] = ()
    """Names of the encoders that were asked."""
    labels: tuple[str, ...] = ()
    """Nouns that match labels of a classifier."""
    words: tuple[str, ...] = ()
    """Words and names that have their own vectors."""
    guessed: tuple[str, ...] = ()
    """Words that are approximated by similar words."""
    unknown: tuple[str, ...] = ()
    """Words without a known meaning."""
    suggestions: Mapping[str, str] = field(default_factory=dict)
    """For unknown words, a known one with a similar spelling."""
    missing: tuple[str, ...] = ()
    """Models that are not downloaded and would improve the understanding of words."""

    @property
    def unfamiliar(self) -> tuple[str, ...]:
        """Words at which the encoders can only guess."""
        return (*self.guessed, *self.unknown)

    def join(self, other: Understanding) -> Understanding:
        """Combine the results of two encoders for one text: a word that one knows is known."""
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
    """Encodes texts as rows of length 1, so that the dot product of two rows is their cosine.

    The vectors of an encoder with ``fingerprint: str``, which changes whenever its vectors do (such as the weights'
    hash), are cached on disk; without it, texts are encoded every time. An encoder may have ``knows(text) -> bool``:
    whether it knows any word of a text; results for unknown words are never confident. It may also have
    ``understand(text) -> Understanding``, with more detail.

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
        """Its name, for users."""
        ...

    @property
    def dim(self) -> int:
        """Number of columns of its vectors."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return ``(len(texts), dim)``, each row of length 1."""
        ...


@runtime_checkable
class ImageTextEncoder(TextEncoder, Protocol):
    """A text encoder that also encodes images: an image and its description have a high dot product."""

    @property
    def short_side(self) -> int:
        """Shorter side in pixels that its preprocessing uses; frames need not be decoded larger."""
        ...

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """Return ``(len(images), dim)``, each row of length 1; images may differ in size."""
        ...


@runtime_checkable
class WindowEncoder(ImageTextEncoder, Protocol):
    """An image-text encoder that encodes several frames of a clip together, like a video encoder.

    A library passes it the frames of each clip and stores one vector per clip. An image is a window of one frame.
    """

    @property
    def window_frames(self) -> int:
        """Number of frames per clip, spread evenly over it."""
        ...

    def encode_windows(self, windows: Sequence[Sequence[Pixels]]) -> Vectors:
        """Return ``(len(windows), dim)``, each row of length 1; the frames of a window are in order of time.

        A window at the end of a video may have fewer frames than requested, but at least one.
        """
        ...


@runtime_checkable
class WordEncoder(TextEncoder, Protocol):
    """A text encoder that also returns a row per word (or token), which trained models use as query features."""

    def words(self, texts: Sequence[str]) -> list[Vectors]:
        """Return a table ``(words, columns)`` for each text, with at least one row."""
        ...

    def tokens(self, text: str) -> list[str]:
        """Return the word or token of each row of a text's table."""
        ...


def fingerprint(encoder: TextEncoder) -> str | None:
    """Return the encoder's fingerprint, or None if it has none."""
    value = getattr(encoder, "fingerprint", None)
    return value if isinstance(value, str) and value else None
