"""`things`, the offline image-text encoder: images as mixtures of label sentences, with the labels themselves kept.

The mixture is of all 1,000 labels by EfficientNet-Lite2 (:mod:`momentseek.recognition.encoders.labels`). Each row also
keeps the most probable labels, so that a search can tell "nearest" from "surely there": :meth:`ThingEncoder.evidence`.
Texts are sentences: one space, no download, no torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from momentseek.recognition.encoders import minilm
from momentseek.recognition.encoders.labels import (
    COLUMNS,
    add_label_columns,
    label_names,
    mixture,
    named_kinds,
    read_label_columns,
    sentences_for,
    unit_vectors,
    words_without_label,
)
from momentseek.recognition.encoders.network import build_network, read_tensors
from momentseek.recognition.encoders.preprocessing import crop_square
from momentseek.recognition.encoders.protocol import Pixels, TextEncoder, Vectors
from momentseek.recognition.runtime import session
from momentseek.recognition.weights.files import load_or_make, locate, packaged_weights, verify

ASSET = packaged_weights("things")
IMAGE_SIDE_PIXELS = 260
TEMPERATURE = 2.0
"""Divides the logits for the mixture: the classifier is surer of its first label than is good for one."""
CHANCE_PER_LABEL, MOST_CHANCE = 0.003, 0.5
"""What a label of a kind may get by chance, and what all labels of a kind may at most."""
RECIPE = "1"
"""Part of the fingerprint; change it whenever the same weights and labels would give other vectors."""


@dataclass(frozen=True)
class LabelEvidence:
    """How surely images show things that a text names, given their vectors; see :meth:`ThingEncoder.evidence`."""

    weights: tuple[float, ...]
    """How much each noun has of the text's meaning."""
    labels: tuple[tuple[int, ...], ...]
    """The labels of each noun's kind."""

    def __call__(self, rows: Vectors) -> Vectors:
        """The evidence of each image, 0 where there is none."""
        numbers, chances = read_label_columns(rows)
        total = np.zeros(len(rows), np.float32)
        for weight, labels in zip(self.weights, self.labels, strict=True):
            share = np.where(np.isin(numbers, labels), chances, 0).sum(axis=1)
            usual = min(CHANCE_PER_LABEL * len(labels), MOST_CHANCE)
            total += weight * np.maximum(0, share - usual) / (1 - usual)
        return total


class ThingEncoder:
    """The offline image-text encoder: an image is a mixture of label sentences and its best labels, a text a sentence.

    Only what is needed is loaded: encoding texts needs no image network.
    """

    name = "things"
    short_side = IMAGE_SIDE_PIXELS

    def __init__(self, sentences: TextEncoder, sentences_print: str, threads: int | None = None) -> None:
        self._sentences = sentences
        self._threads = threads
        self.dim = sentences.dim + COLUMNS
        parts = ("things", RECIPE, ASSET.fingerprint, sentences_print, *sentences_for(label_names()))
        self.fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row per text; 0 in the columns that keep labels."""
        return np.pad(self._meanings(texts), ((0, 0), (0, COLUMNS)))

    def knows(self, text: str) -> bool:
        """Whether any word of a text means something to it."""
        own = getattr(self._sentences, "knows", None)
        return own is None or bool(own(text))

    def unknown_words(self, text: str) -> list[str]:
        """The words of a text that mean nothing to it."""
        own = getattr(self._sentences, "unknown_words", None)
        return [] if own is None else list(own(text))

    def unfamiliar(self, words: Sequence[str]) -> list[str]:
        """Those of some words that are neither in a label's name nor name a kind of labels: there it can only guess."""
        return [word for word in words_without_label(words) if not named_kinds(word)]

    def evidence(self, text: str) -> LabelEvidence:
        """A function of images' vectors: how surely each shows the things that a text names, by its labels alone.

        0 is no sign of it. It is the sum over the text's nouns of w · (Σ p − a) / (1 − a), with p the probabilities of
        the labels of the noun's kind, a what as many labels get by chance, and w how much the noun has of the text's
        meaning (their cosine).
        """
        kinds = named_kinds(text)
        whole, *nouns = self._meanings([text, *(noun for noun, _ in kinds)]) if kinds else (None,)
        weights = [max(0.0, float(whole @ noun)) for noun in nouns]

        return LabelEvidence(tuple(weights), tuple(labels for _, labels in kinds))

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """One row per image; of an image that is not square, the middle square counts."""

        rows = np.empty((len(images), self.dim), dtype=np.float32)
        for at, image in enumerate(images):  # one by one: several at once give the same bits and take longer
            (logits,) = self._network.run(["logits"], {"images": crop_square(image, IMAGE_SIDE_PIXELS)[None]})
            mixed = mixture(logits, self._centred_labels, len(self._labels), TEMPERATURE)
            rows[at] = add_label_columns(mixed, probabilities(logits))[0]
        return rows

    def pool(self, rows: Vectors) -> Vectors:
        """One row for several images that show the same scene: their mean direction, and the mean of each label."""
        numbers, kept = read_label_columns(rows)
        chances = np.zeros((1, len(label_names())), np.float32)
        np.add.at(chances[0], numbers.ravel(), kept.ravel() / len(rows))
        mean = rows[:, :-COLUMNS].mean(axis=0, keepdims=True)
        row: Vectors = add_label_columns(unit_vectors(mean), chances)[0]
        return row

    def _meanings(self, texts: Sequence[str]) -> Vectors:
        return unit_vectors(self._sentences.encode(texts) - self._labels.mean(axis=0))

    @cached_property
    def _labels(self) -> Vectors:
        """The labels' sentences, encoded once, ever."""

        def make() -> bytes:
            return self._sentences.encode(sentences_for(label_names())).astype("<f4").tobytes()

        dim = self._sentences.dim
        return np.frombuffer(load_or_make("label-vectors", self.fingerprint, make), "<f4").reshape(-1, dim)

    @cached_property
    def _centred_labels(self) -> Vectors:
        return unit_vectors(self._labels - self._labels.mean(axis=0))

    @cached_property
    def _network(self) -> Any:
        made = load_or_make("label-network", f"{RECIPE}-{ASSET.fingerprint}", convert_lite2)
        return session(made, self._threads, ASSET.extra)


def load_thing_encoder(sentences: TextEncoder | None = None, threads: int | None = None) -> ThingEncoder:
    """The encoder, from two installed packages; ``sentences`` is a MiniLM that is loaded already."""

    locate(ASSET)  # that it is missing is said now; its weights are verified when they are read
    return ThingEncoder(sentences or minilm.load_minilm(threads=threads), minilm.ASSET.fingerprint, threads)


def convert_lite2() -> bytes:
    """The image network as ONNX."""

    (file,) = ASSET.files
    return build_network(read_tensors(verify(ASSET) / file))


def probabilities(logits: Vectors) -> Vectors:
    """The softmax of each row.

    >>> probabilities(np.log(np.array([[1, 3]], np.float32))).round(2).tolist()
    [[0.25, 0.75]]
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: Vectors = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return result
