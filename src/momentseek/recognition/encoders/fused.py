"""Two image-text encoders combined, with their vectors concatenated in one row: ``things+clip``.

A row is ``[first | second] / √2``, both of length 1, so that a stored row has length 1 and any weighted sum of both
encoders' scores is one inner product. The second encoder may be slow: a library first makes rows with the first
encoder only (``widen``), and adds the second's columns later (``fill``). Until then these are zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.recognition.encoders.protocol import (
    ImageTextEncoder,
    Pixels,
    TextEncoder,
    Understanding,
    Vectors,
    fingerprint,
)
from momentseek.recognition.encoders.window_mean import mean_direction

SEPARATOR = "+"
"""Separates the two encoders in a spec."""
SHARE = float(np.sqrt(0.5))
"""Length of each encoder's columns in a row, and of a row whose second columns are not filled."""
RECIPE = "1"
"""Part of the fingerprint; change it whenever the layout of rows changes."""


@dataclass(frozen=True, eq=False)
class FusedEvidence:
    """Evidence from both encoders that images show what a text names, given the images' rows."""

    first: Callable[[Vectors], Vectors]
    """The first encoder's evidence, given its own rows."""
    columns: int
    """Number of columns of the first encoder."""
    margin: Vectors | None = None
    """Vector whose product with the second encoder's columns is an image's margin; None if it has no margin."""
    added: float = 0.0
    """Offset that is added to the margin."""

    def __call__(self, rows: Vectors) -> Vectors:
        """Return columns: the first's evidence and, if the second has one, its margin; NaN where it is not filled."""
        found = np.asarray(self.first(rows[:, : self.columns] / np.float32(SHARE)), np.float32)
        if self.margin is None:
            return found
        second = rows[:, self.columns :]
        products = np.vecdot(second, self.margin / np.float32(SHARE))  # row by row: bit-identical
        looked = np.vecdot(second, second) > 0
        margins = np.where(looked, products + np.float32(self.added), np.float32(np.nan))
        return np.stack([found, margins], axis=1)


class FusedEncoder:
    """Two image-text encoders whose vectors are concatenated in one row.

    The second may have ``ready: bool``, false while its weights are not installed; its columns are zero then.
    """

    def __init__(self, first: ImageTextEncoder, second: ImageTextEncoder, name: str | None = None) -> None:
        self.first, self.second = first, second
        self.parts = first, second
        self.blocks = first.dim, second.dim
        """Number of columns of each part."""
        self.name = name or f"{first.name}{SEPARATOR}{second.name}"
        self.dim = sum(self.blocks)
        self.short_side = max(first.short_side, second.short_side)
        prints = [fingerprint(part) or part.name for part in self.parts]
        self.fingerprint = hashlib.sha256("\n".join(["fused", RECIPE, *prints]).encode()).hexdigest()

    def __getattr__(self, name: str) -> Any:
        if name == "evidence" and hasattr(self.first, name):
            return self._evidence
        raise AttributeError(name)

    @property
    def ready(self) -> bool:
        """Whether the second encoder's weights are installed."""
        return bool(getattr(self.second, "ready", True))

    # Rows of images.

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """Return one row per image, from both encoders."""
        rows = self.widen(self.first.encode_images(images))
        return self.fill(rows, self.second.encode_images(images)) if self.ready else rows

    def widen(self, rows: NDArray[Any]) -> Vectors:
        """Widen rows of the first encoder by unfilled second columns."""
        return np.pad(np.asarray(rows, np.float32) * np.float32(SHARE), ((0, 0), (0, self.blocks[1])))

    def fill(self, rows: NDArray[Any], second: NDArray[Any]) -> Vectors:
        """Return the rows with the second encoder's columns filled."""
        columns = np.asarray(second, np.float32) * np.float32(SHARE)
        return np.concatenate([np.asarray(rows[:, : self.blocks[0]], np.float32), columns], axis=1)

    def split(self, rows: NDArray[Any]) -> tuple[Vectors, Vectors]:
        """Split rows into the vectors of the first and the second encoder, each of length 1 or zero."""
        wide = np.asarray(rows, np.float32) / np.float32(SHARE)
        return wide[:, : self.blocks[0]], wide[:, self.blocks[0] :]

    def is_filled(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which rows have the second encoder's columns."""
        found: NDArray[np.bool_] = (rows[:, self.blocks[0] :] != 0).any(axis=1)
        return found

    def pool(self, rows: Vectors) -> Vectors:
        """Combine the rows of several images of one scene."""
        first, second = self.split(rows)
        filled = second[self.is_filled(rows)]
        row = self.widen(_pool_of(self.first)(first)[None])
        pooled: Vectors = self.fill(row, _pool_of(self.second)(filled)[None]) if len(filled) else row
        return np.asarray(pooled[0], np.float32)

    # texts

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return both encoders' vectors of texts, concatenated, each of length 1; a search weights them."""
        return np.concatenate([part.encode(texts) for part in self.parts], axis=1)

    @property
    def sentences(self) -> TextEncoder | None:
        """The sentence encoder that the parts use, if any."""
        return getattr(self.first, "sentences", None)

    def query_sentences(self, text: str) -> list[str]:
        """Return the sentences that a query needs from the sentence encoder."""
        asking = [part.query_sentences(text) for part in self.parts if hasattr(part, "query_sentences")]
        return [sentence for some in asking for sentence in some]

    def knows(self, text: str) -> bool:
        """Whether one of the encoders knows any word of a text."""
        return any(getattr(part, "knows", lambda _: True)(text) for part in self.parts)

    def understand(self, text: str) -> Understanding:
        """Return how both encoders understand the words of a text; an encoder without ``understand`` is ignored."""
        asked = [part.understand(text) for part in self.parts if hasattr(part, "understand")]
        return reduce(Understanding.join, asked, Understanding())

    def _evidence(self, text: str) -> FusedEvidence:
        margin = getattr(self.second, "margin_query", lambda _: (None, 0.0))
        return FusedEvidence(self.first.evidence(text), self.blocks[0], *margin(text))  # type: ignore[attr-defined]


def _pool_of(part: ImageTextEncoder) -> Callable[[Vectors], Vectors]:
    pool: Callable[[Vectors], Vectors] = getattr(part, "pool", mean_direction)
    return pool
