"""`things`, the offline image-text encoder: images as mixtures of label sentences, stored with their labels.

Norouzi et al., "Zero-Shot Learning by Convex Combination of Semantic Embeddings" (ICLR 2014): a classifier's labels c
(EfficientNet-Lite2), with probabilities p, become ``v = Σ p(c)·e(c)``, where ``e(c)`` is a sentence encoder's vector of
"a photo of a <label>". A query is that encoder's vector of the query. The labels' mean vector, which all sentences
about photos share, is subtracted from both, so that a cosine of 0 means "as similar as any label". Each row also stores
the most probable labels, so that a search can tell "nearest" from "certainly there": :meth:`ThingEncoder.evidence`.

The encoder knows only labels: 1,000 names of animals, things, food and a few places. It knows no actions ("opens"), no
relations ("left of"), no colours, and of people only a baseball player, a bridegroom and a scuba diver.

``kinds.tsv`` lists the labels of each kind: 118 labels are dogs, 398 animals. It is derived from WordNet 3.0 (Princeton
University; see ``WORDNET-LICENSE.txt``): each line has numbers of labels and the nouns for which they stand, a noun by
the first of its three commonest senses that has labels at or below it. Labels are also found by the last word of their
names. Words for people are left out, since the three labels below them are no evidence of people.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.recognition.encoders import minilm
from momentseek.recognition.encoders.english import is_english, is_foreign, split_words, word_is_little
from momentseek.recognition.encoders.network import build_network, read_tensors
from momentseek.recognition.encoders.preprocessing import crop_square
from momentseek.recognition.encoders.protocol import Pixels, TextEncoder, Understanding, Vectors
from momentseek.recognition.runtime import session
from momentseek.recognition.weights.files import load_or_make, locate, packaged_weights, verify

LABELS_FILE = Path(__file__).with_name("imagenet.txt")


@cache
def _label_stems() -> frozenset[str]:
    return frozenset(map(_stem, set(re.findall(r"\w+", LABELS_FILE.read_text("utf-8")))))


def _stem(word: str) -> str:
    """Return a word without common endings, so that "dogs" matches "dog".

    >>> [_stem(word) for word in ("Dogs", "beaches", "running", "bus")]
    ['dog', 'beach', 'runn', 'bus']
    """
    word = word.lower()
    for ending in ("ing", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def words_without_label(words: Sequence[str]) -> list[str]:
    """Return the words that are in no label's name, in any form.

    >>> words_without_label(["dogs", "happiness"])
    ['happiness']
    """
    known = _label_stems()
    return [word for word in words if _stem(word) not in known]


def label_names() -> list[str]:
    """Return ImageNet's 1,000 classes in the classifier's order, by everyday names that include the kind of thing.

    >>> label_names()[281], label_names()[162], label_names()[967]
    ('tabby cat', 'beagle dog', 'espresso coffee')
    """
    return LABELS_FILE.read_text("utf-8").splitlines()


def sentences_for(names: Sequence[str]) -> list[str]:
    """Return a sentence for each label.

    >>> sentences_for(["tabby cat", "iron"])
    ['a photo of a tabby cat', 'a photo of an iron']
    """
    return [f"a photo of {'an' if name[0].lower() in 'aeiou' else 'a'} {name}" for name in names]


def mixture(logits: Vectors, labels: Vectors, top: int, temperature: float) -> Vectors:
    """Return the mean of each image's most probable labels' vectors, weighted by probability, of length 1.

    >>> labels = np.array([[1, 0], [0, 1], [-1, 0]], np.float32)
    >>> rows = mixture(np.array([[8, 8, 0], [9, 0, 0]], np.float32), labels, top=2, temperature=1)
    >>> rows.astype(float).round(2).tolist()
    [[0.71, 0.71], [1.0, 0.0]]
    """
    best = np.argpartition(-logits, top - 1, axis=1)[:, :top]
    chosen = np.take_along_axis(logits, best, axis=1)
    weight = np.exp((chosen - chosen.max(axis=1, keepdims=True)) / temperature)
    return unit_vectors(np.einsum("ij,ijk->ik", weight, labels[best]))


def unit_vectors(rows: Vectors) -> Vectors:
    """Scale rows to length 1."""
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


KINDS_FILE = Path(__file__).with_name("kinds.tsv")
PLURALS = (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("sses", "ss"), ("xes", "x"), ("ves", "f"), ("s", ""))
"""Endings of plurals and of their singulars."""


def named_kinds(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return the nouns of a text that match labels, two-word nouns first, each with its labels' numbers.

    >>> [(noun, len(labels)) for noun, labels in named_kinds("Two dogs beside a teddy bear")]
    [('dogs', 118), ('teddy bear', 1)]
    """
    words = re.findall(r"[^\W\d_]+", text.lower())
    found: list[tuple[str, tuple[int, ...]]] = []
    at = 0
    while at < len(words):
        for size in (2, 1):
            labels = _labels_of(words[at : at + size]) if at + size <= len(words) else ()
            if labels:
                found.append((" ".join(words[at : at + size]), labels))
                break
        at += size
    return found


def _labels_of(words: list[str]) -> tuple[int, ...]:
    *before, last = words
    forms = [last] + [last.removesuffix(end) + new for end, new in PLURALS if last.endswith(end) and len(last) > 3]
    table = _kinds()
    return next((_numbers(labels) for form in forms if (labels := table.get("_".join([*before, form])))), ())


def kind_names() -> list[str]:
    """Return the nouns that match labels.

    >>> "teddy bear" in kind_names()
    True
    """
    return [noun.replace("_", " ") for noun in _kinds()]


@cache
def _kinds() -> dict[str, str]:
    """Return each noun's labels unparsed: a query has few nouns, and parsing the whole table would delay it."""
    table: dict[str, str] = {}
    for line in KINDS_FILE.read_text("utf-8").splitlines():
        numbers, nouns = line.split("\t")
        table.update(dict.fromkeys(nouns.split(), numbers))
    return table


def _numbers(ranges: str) -> tuple[int, ...]:
    """Expand a list of ranges to numbers.

    >>> _numbers("0-2,7")
    (0, 1, 2, 7)
    """
    ends = (part.partition("-") for part in ranges.split(","))
    return tuple(number for first, _, last in ends for number in range(int(first), int(last or first) + 1))


# An image's most probable labels are stored in columns of its vector that queries ignore. A search ranks all vectors by
# similarity to the query, and then checks for the few it shows whether the image certainly shows a thing that the query
# names. That needs the probabilities of labels, which cannot be recovered from a mixture. So a row is
#
#     √(1 - B²) v,  (c₁ + 1) / 2¹⁵, …, (cₖ + 1) / 2¹⁵,  p₁ / 2⁴, …, pₖ / 2⁴,  f
#
# with v the mixture (length 1), c the numbers of the k most probable labels, p their probabilities, and f such that the
# added columns have length B. Rows have length 1, dot products with queries (0 in these columns) are those of v times a
# constant, and numbers of labels survive rounding to float16 exactly.
KEPT_LABELS = 16
"""k: number of labels stored per image."""
COLUMNS = 2 * KEPT_LABELS + 1
ADDED_LENGTH = 0.15
"""B: length of the added columns of a row."""
NUMBER_STEP, CHANCE_STEP = 2.0**-15, 2.0**-4


def add_label_columns(vectors: Vectors, chances: Vectors) -> Vectors:
    """Return rows of length 1 from images' mixtures and the probabilities of all labels."""
    best = np.argsort(-chances, axis=1, kind="stable")[:, :KEPT_LABELS]
    numbers = (best + 1) * NUMBER_STEP
    kept = np.take_along_axis(chances, best, axis=1) * CHANCE_STEP
    filler = np.sqrt(ADDED_LENGTH**2 - (numbers**2).sum(axis=1) - (kept**2).sum(axis=1))
    parts = (np.sqrt(1 - ADDED_LENGTH**2) * vectors, numbers, kept, filler[:, None])
    return np.concatenate(parts, axis=1).astype(np.float32)


def read_label_columns(rows: Vectors) -> tuple[NDArray[np.int64], Vectors]:
    """Return the numbers of the labels stored in rows, most probable first, and their probabilities.

    >>> chances = np.zeros((1, 1000), np.float32)
    >>> chances[0, [281, 999]] = 0.75, 0.25
    >>> row = add_label_columns(np.array([[0.6, 0.8]], np.float32), chances)
    >>> numbers, kept = read_label_columns(row.astype(np.float16).astype(np.float32))
    >>> numbers[0, :2].tolist(), kept[0, :2].tolist(), round(float(np.linalg.norm(row)), 6)
    ([281, 999], [0.75, 0.25], 1.0)
    """
    columns = rows[:, -COLUMNS:]
    numbers = np.rint(columns[:, :KEPT_LABELS] / NUMBER_STEP).astype(np.int64) - 1
    return numbers, np.maximum(columns[:, KEPT_LABELS : 2 * KEPT_LABELS] / np.float32(CHANCE_STEP), 0)


ASSET = packaged_weights("things")
IMAGE_SIDE_PIXELS = 260
TEMPERATURE = 2.0
"""Divisor of the logits for the mixture, because the classifier is too confident of its first label."""
CHANCE_PER_LABEL, MOST_CHANCE = 0.003, 0.5
"""Probability that a label gets by chance, and the maximum for all labels of a kind."""
RECIPE = "1"
"""Part of the fingerprint; change it whenever the same weights and labels would give other vectors."""


@dataclass(frozen=True)
class LabelEvidence:
    """Evidence that images show the things a text names, given their vectors; see :meth:`ThingEncoder.evidence`."""

    weights: tuple[float, ...]
    """Share of each noun in the text's meaning."""
    labels: tuple[tuple[int, ...], ...]
    """The labels of each noun's kind."""

    def __call__(self, rows: Vectors) -> Vectors:
        """Return the evidence of each image, 0 for none."""
        numbers, chances = read_label_columns(rows)
        total = np.zeros(len(rows), np.float32)
        for weight, labels in zip(self.weights, self.labels, strict=True):
            share = np.where(np.isin(numbers, labels), chances, 0).sum(axis=1)
            usual = min(CHANCE_PER_LABEL * len(labels), MOST_CHANCE)
            total += weight * np.maximum(0, share - usual) / (1 - usual)
        return total


class ThingEncoder:
    """The offline image-text encoder: an image is a mixture of label sentences and its best labels, a text a sentence.

    Networks are loaded at first use: encoding texts does not load the image network.
    """

    name = "things"
    short_side = IMAGE_SIDE_PIXELS

    def __init__(self, sentences: TextEncoder, sentences_print: str, threads: int | None = None) -> None:
        self.sentences = sentences
        self._threads = threads
        self.dim = sentences.dim + COLUMNS
        parts = ("things", RECIPE, ASSET.fingerprint, sentences_print, *sentences_for(label_names()))
        self.fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, with 0 in the label columns."""
        return np.pad(self._meanings(texts), ((0, 0), (0, COLUMNS)))

    def knows(self, text: str) -> bool:
        """Whether the encoder knows any word of a text."""
        words, strange = split_words(text), self._strange_words(text)
        return any(word not in strange for word in [word for word in words if not word_is_little(word)] or words)

    def understand(self, text: str) -> Understanding:
        """Return which words of a text name labels; others are guessed by the nearest meaning."""
        strange = self._strange_words(text)
        labels = tuple(noun for noun, _ in named_kinds(text) if noun not in strange)
        named = {word for label in labels for word in label.split()}
        rest = [word for word in re.findall(r"\w+", text.lower()) if word not in named]
        without = [word for word in words_without_label(rest) if word not in strange]
        return Understanding(
            (self.name,),
            (*labels, *(word for word in rest if word not in without and word not in strange)),
            guessed=tuple(without),
            unknown=tuple(word for word in rest if word in strange),
        )

    def _strange_words(self, text: str) -> set[str]:
        """Return the unknown words of a text; all words if it is not in English."""
        words = split_words(text)
        if is_foreign(words):
            return set(words)
        find = getattr(self.sentences, "unknown_words", None)
        others = [word for word in re.findall(r"\w+", text) if not is_english(word.lower())]
        return set() if find is None or not others else set(map(str.lower, find(" ".join(others))))

    def evidence(self, text: str) -> LabelEvidence:
        """Return a function of images' vectors: the evidence that each shows the things a text names.

        It is the sum over the text's nouns of w · (Σ p − a) / (1 − a), with p the probabilities of the labels of the
        noun's kind, a the probability that as many labels get by chance, and w the cosine of the noun and the text. 0
        means no evidence.
        """
        kinds = named_kinds(text)
        whole, *nouns = self._meanings([text, *(noun for noun, _ in kinds)]) if kinds else (None,)
        weights = [max(0.0, float(whole @ noun)) for noun in nouns]

        return LabelEvidence(tuple(weights), tuple(labels for _, labels in kinds))

    def encode_images(self, images: Sequence[Pixels]) -> Vectors:
        """Return one row per image; only the middle square of an image is used."""

        rows = np.empty((len(images), self.dim), dtype=np.float32)
        for at, image in enumerate(images):  # one by one: batches give the same bits and take longer
            (logits,) = self._network.run(["logits"], {"images": crop_square(image, IMAGE_SIDE_PIXELS)[None]})
            mixed = mixture(logits, self._centred_labels, len(self._labels), TEMPERATURE)
            rows[at] = add_label_columns(mixed, probabilities(logits))[0]
        return rows

    def meanings(self, rows: Vectors) -> Vectors:
        """Return images' rows without the label columns."""
        return rows[:, :-COLUMNS]

    def pool(self, rows: Vectors) -> Vectors:
        """Combine the rows of several images of one scene: their mean direction, and the mean of each label."""
        numbers, kept = read_label_columns(rows)
        chances = np.zeros((1, len(label_names())), np.float32)
        np.add.at(chances[0], numbers.ravel(), kept.ravel() / len(rows))
        mean = rows[:, :-COLUMNS].mean(axis=0, keepdims=True)
        row: Vectors = add_label_columns(unit_vectors(mean), chances)[0]
        return row

    def _meanings(self, texts: Sequence[str]) -> Vectors:
        return unit_vectors(self.sentences.encode(texts) - self._mean_label)

    def query_sentences(self, text: str) -> list[str]:
        """Return the sentences that a query needs from the sentence encoder."""
        return [text, *(noun for noun, _ in named_kinds(text))]

    @cached_property
    def _labels(self) -> Vectors:
        """Return the vectors of the labels' sentences, computed once and cached."""

        def make() -> bytes:
            return self.sentences.encode(sentences_for(label_names())).astype("<f4").tobytes()

        dim = self.sentences.dim
        return np.frombuffer(load_or_make("label-vectors", self.fingerprint, make), "<f4").reshape(-1, dim)

    @cached_property
    def _mean_label(self) -> Vectors:
        mean: Vectors = self._labels.mean(axis=0)
        return mean

    @cached_property
    def _centred_labels(self) -> Vectors:
        return unit_vectors(self._labels - self._mean_label)

    @cached_property
    def _network(self) -> Any:
        made = load_or_make("label-network", f"{RECIPE}-{ASSET.fingerprint}", convert_lite2)
        return session(made, self._threads, ASSET.extra)


def load_thing_encoder(sentences: TextEncoder | None = None, threads: int | None = None) -> ThingEncoder:
    """Load the encoder from two packages; ``sentences`` is a MiniLM that is already loaded."""

    locate(ASSET)  # fails now if it is missing; its weights are verified when they are read
    return ThingEncoder(sentences or minilm.load_minilm(threads=threads), minilm.ASSET.fingerprint, threads)


def convert_lite2() -> bytes:
    """Return the image network as ONNX."""

    (file,) = ASSET.files
    return build_network(read_tensors(verify(ASSET) / file))


def probabilities(logits: Vectors) -> Vectors:
    """Return the softmax of each row.

    >>> probabilities(np.log(np.array([[1, 3]], np.float32))).round(2).tolist()
    [[0.25, 0.75]]
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    result: Vectors = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return result
