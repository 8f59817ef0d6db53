"""`clip`, the offline encoder that understands descriptions: CLIP ViT-B/16's image tower with word queries.

The image tower is available from a package index (``packages.toml``). Its text tower is not, so
:mod:`momentseek.recognition.encoders.clip_text` maps queries into CLIP's space. Images are encoded at 160 instead of
224 pixels, in half of the time and with nearly the same results (docs/encoders.md has the figures).

CLIP's image vectors share a direction: two unrelated pictures have a cosine of about .5. So the mean of many pictures'
vectors is subtracted, and a cosine of 0 means "as similar as any picture". In addition, some pictures are near to every
text. So a picture's similarity to common words is stored with it, as

    h = log(mean over common words w of exp(β v·w)) / β

and a query scores ``v·q - λ h``. The margin ``v·q - h``, how much better a query fits than common words do, also lets a
search tell "certainly there" from "nearest": :meth:`ClipEncoder.margin_query`. A row is ``[v, h, f, f, f, f] /
√(1 + H²)``, with f such that its length is 1, spread over several columns so that none is much larger than the others
when rows are rounded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from momentseek.core.errors import MissingWeightsError, MomentseekError
from momentseek.recognition.encoders.clip_text import (
    TOWER,
    ClipWords,
    centre_images,
    fitted_maps,
    load_text_tower,
    mean_picture,
)
from momentseek.recognition.encoders.clip_tower import build_tower, read_weights
from momentseek.recognition.encoders.preprocessing import crop_square
from momentseek.recognition.encoders.protocol import Pixels, TextEncoder, Understanding, Vectors
from momentseek.recognition.encoders.things import kind_names, unit_vectors
from momentseek.recognition.runtime import session
from momentseek.recognition.weights.files import are_installed, load_or_make, packaged_weights, verify

ASSET = packaged_weights("clip")
CLIP_COLUMNS, FILLER_COLUMNS = 512, 4
SIDE_PIXELS, PUBLISHED_SIDE_PIXELS = 160, 224
USUAL_SHARPNESS, USUAL_SHARE = 30.0, 0.5
"""β and λ of the common words, chosen on real videos (docs/encoders.md)."""
MAX_USUAL = 0.4
"""H, the upper limit of h."""
USUAL_WORDS = [
    "person", "man", "woman", "boy", "girl", "child", "baby", "crowd", "people", "group", "face", "hand", "player",
    "worker", "dancer", "singer", "walking", "running", "sitting", "standing", "eating", "drinking", "dancing",
    "talking", "playing", "driving", "swimming", "jumping", "cooking", "reading", "sleeping", "holding", "riding",
    "throwing", "climbing", "singing",
]  # fmt: skip
"""Common words besides the names of things: people, and what they do."""
PEOPLE = {
    "person", "people", "man", "men", "woman", "women", "child", "children", "boy", "boys", "girl", "girls", "baby",
    "kid", "kids", "guy", "guys", "lady", "ladies", "crowd", "group", "somebody", "someone",
}  # fmt: skip
"""Words that ask for people in general."""
PEOPLE_MARGIN = 0.1
"""Margin added for a text that asks only for people."""
RECIPE = "1"
"""Part of the fingerprint; change it whenever the same weights would give other vectors."""
KNOWN_NUMBERS = (0.312, -0.561, 0.586, -0.048, 0.383, 0.170, 0.581, -0.243)
"""First numbers of the tower's vector of a known picture, to check that the runtime computes it correctly."""


class ClipEncoder:
    """CLIP ViT-B/16 for images, and an offline approximation of its text space for queries.

    Everything is loaded at first use: texts do not need the image tower, and can be encoded without its weights.
    """

    name = "clip"
    dim = CLIP_COLUMNS + 1 + FILLER_COLUMNS
    short_side = SIDE_PIXELS

    def __init__(self, sentences: TextEncoder, threads: int | None = None) -> None:
        self.words, self.sentences = ClipWords(sentences), sentences
        self._threads = threads
        mean = hashlib.sha256(mean_picture().tobytes()).hexdigest()
        parts = ("clip", RECIPE, str(self.dim), ASSET.fingerprint, str(SIDE_PIXELS), mean)
        self.fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def ready(self) -> bool:
        """Whether the tower's weights are installed."""
        return are_installed(ASSET)

    # images

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """Return one row per image; only the middle square of an image is used."""
        raw = [self._run(crop_square(image, SIDE_PIXELS)[None]) for image in images]  # batches are not faster
        if not raw:
            return np.zeros((0, self.dim), np.float32)
        rows = centre_images(np.concatenate(raw))
        near = np.exp(USUAL_SHARPNESS * (rows @ self._usual_words.T)).mean(axis=1)
        usual = np.clip(np.log(near) / USUAL_SHARPNESS, -MAX_USUAL, MAX_USUAL)
        filler = np.sqrt((MAX_USUAL**2 - usual**2) / FILLER_COLUMNS)
        return unit_vectors(np.column_stack([rows, usual, *[filler] * FILLER_COLUMNS]))

    def _run(self, squares: Pixels) -> Vectors:
        vectors: Vectors = self._tower.run(["vectors"], {"images": squares})[0]
        return vectors

    @cached_property
    def _tower(self) -> Any:
        (file,) = ASSET.files
        tower = session(build_tower(read_weights(verify(ASSET) / file), SIDE_PIXELS), self._threads, ASSET.extra)
        (numbers,) = tower.run(["vectors"], {"images": known_picture()[None]})
        if not np.allclose(numbers[0, : len(KNOWN_NUMBERS)], KNOWN_NUMBERS, atol=0.1):
            raise MomentseekError("ONNX Runtime computes CLIP wrongly on this machine; install another onnxruntime")
        return tower

    @cached_property
    def _usual_words(self) -> Vectors:
        """Return the vectors of common words, computed once."""

        def make() -> bytes:
            return self.words.bridge([*kind_names(), *USUAL_WORDS]).astype("<f4").tobytes()

        kept = load_or_make("clip-usual-words", f"{fitted_maps().fingerprint} {self.fingerprint}", make)
        return np.frombuffer(kept, "<f4").reshape(-1, CLIP_COLUMNS)

    # texts

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, of length 1."""
        return unit_vectors(_add_usual(self.words.encode(texts), USUAL_SHARE))

    def query_sentences(self, text: str) -> list[str]:
        """Return the sentences that a query needs from the sentence encoder."""
        return self.words.query_sentences(text)

    def knows(self, text: str) -> bool:
        """Whether the encoder knows any word of a text."""
        return self.words.knows(text)

    def understand(self, text: str) -> Understanding:
        """Return which words of a text have their own vectors, and which are approximated by similar words."""
        read = self.words.read(text)
        words = (text,) if read.tower else read.by("table")
        unknown = read.by("unknown")
        tried = () if read.foreign else unknown
        near = {word: found for word in tried if (found := self.words.suggestion(word))}
        missing = () if read.has_table or read.tower else (self.words.name,)
        return Understanding((self.name,), (), words, read.by("bridge"), unknown, near, missing)

    def margin_query(self, text: str) -> tuple[Vectors, float]:
        """Return a vector whose product with an image's row is the text's margin over common words, and an offset.

        The offset is for texts that ask for people, by their share of the words: they are in most videos and need less
        evidence.
        """
        (row,) = self.words.encode([text])
        said = [word.text for word in self.words.read(text).words if word.source != "ignored"]
        added = PEOPLE_MARGIN * sum(word in PEOPLE for word in said) / max(1, len(said))
        return _add_usual(row[None], 1.0)[0] * np.sqrt(np.float32(1 + MAX_USUAL**2)), added


class PlainClipEncoder:
    """`clip-b16`: CLIP ViT-B/16 as published, to make features for other programs.

    It uses 224 pixels and 512 unmodified columns, and encodes texts with its own text tower, which must be downloaded.
    For searching a library ``clip`` is better.
    """

    name, dim, short_side = "clip-b16", CLIP_COLUMNS, PUBLISHED_SIDE_PIXELS

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self.fingerprint = hashlib.sha256(f"{self.name} {RECIPE} {ASSET.fingerprint}".encode()).hexdigest()

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """Return one row per image; only the middle square of an image is used."""
        squares = (crop_square(image, self.short_side)[None] for image in images)
        raw: list[Vectors] = [self._tower.run(["vectors"], {"images": square})[0] for square in squares]
        return unit_vectors(np.concatenate(raw)) if raw else np.zeros((0, self.dim), np.float32)

    @cached_property
    def _tower(self) -> Any:
        (file,) = ASSET.files
        return session(build_tower(read_weights(verify(ASSET) / file), self.short_side), self._threads, ASSET.extra)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, from the text tower."""
        tower = load_text_tower()
        if tower is None:
            raise MissingWeightsError(f"{self.name} has no text tower here; get it with: momentseek models get {TOWER}")
        return tower.encode(texts)


def _add_usual(rows: Vectors, share: float) -> Vectors:
    """Extend text vectors so that their products with image rows subtract a share of the common words' similarity."""
    return np.pad(np.column_stack([rows, np.full(len(rows), -share, np.float32)]), ((0, 0), (0, FILLER_COLUMNS)))


def known_picture() -> Pixels:
    """Return a picture of a red disc on blue, in the tower's input format."""
    across = np.arange(SIDE_PIXELS) - SIDE_PIXELS / 2
    disc = across[:, None] ** 2 + across**2 < (SIDE_PIXELS / 3) ** 2
    return np.where(disc[..., None], np.array([200, 30, 30]), np.array([40, 60, 160])).astype(np.uint8)
