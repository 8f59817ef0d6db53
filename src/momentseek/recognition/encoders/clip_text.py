"""Map queries into CLIP's image space without CLIP's text tower.

A query's vector is the mean of its words' vectors plus a small part of the whole sentence's vector. Names of several
words ("hot dog") take precedence over single words. A word in the table, which is downloaded on the user's machine
(16,785 words and names with their CLIP ViT-B/32 text vectors), has its true vector, moved to ViT-B/16's space by a
linear map. Any other word is moved there from MiniLM's vectors by a second map, the bridge. Both maps, and the mean
image vector that is subtracted before images and texts are compared, were fitted by ``tools/fit_clip_text.py`` and are
in ``clip_text.npz``.

If CLIP's own text tower is installed, it is used instead, with the same image vectors.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.dual_encoder import TextTower
from momentseek.recognition.encoders.english import (
    FOREIGN_WORDS,
    LETTERS,
    STOP_WORDS,
    english_words,
    is_english,
    is_foreign,
    nearest_spelling,
    split_words,
    word_forms,
)
from momentseek.recognition.encoders.network import read_pickle
from momentseek.recognition.encoders.protocol import TextEncoder, Vectors
from momentseek.recognition.encoders.protocol import fingerprint as fingerprint_of
from momentseek.recognition.encoders.text_cache import RecentTexts
from momentseek.recognition.encoders.things import label_names, sentences_for, unit_vectors
from momentseek.recognition.weights.catalog import find_hub_model
from momentseek.recognition.weights.files import are_installed, load_or_make, packaged_weights, verify
from momentseek.recognition.weights.hub import check_model, model_folder, read_lock

FITTED_FILE = Path(__file__).with_name("clip_text.npz")
TABLE = packaged_weights("clip-words")
PROMPT = "a photo of a {}"
"""Sentence that the bridge uses in addition to the word itself."""
SENTENCE_SHARE = 0.3
"""Weight of the bridge's vector of a whole query, relative to that of its words."""
BRIDGE_WAVES = 2000
"""Number of features of the bridge besides MiniLM's numbers."""
WAVE_SCALE = 0.85
TOWER = "clip-b16-text"
DIM = 512
RECIPE = "2"
"""Part of the fingerprint; change it whenever the same files would give other vectors."""
MAX_NAME_WORDS = 3
"""Maximum number of words in a name of the table."""
Source = Literal["table", "bridge", "ignored", "unknown"]


@dataclass(frozen=True)
class ReadWord:
    """A word or name in a query, and the source of its vector."""

    text: str
    source: Source
    entry: str = ""
    """Its entry in the table."""


@dataclass(frozen=True)
class TextReading:
    """The interpretation of a query, word by word."""

    words: tuple[ReadWord, ...]
    has_table: bool = True
    """Whether the word table is installed; without it every word uses the bridge."""
    foreign: bool = False
    """Whether the query is not in English, so that every word is unknown."""
    tower: str = ""
    """The text tower that encodes the whole query; words are then not looked up."""

    def by(self, source: Source) -> tuple[str, ...]:
        """Return the words with vectors from one source."""
        return tuple(word.text for word in self.words if word.source == source)


@dataclass(frozen=True, eq=False)
class FittedMaps:
    """The maps fitted by ``tools/fit_clip_text.py``."""

    map: Vectors
    """From centred ViT-B/32 text vectors to ViT-B/16's, ``(512, 512)``."""
    bridge: Vectors
    """From ``bridge_features`` to ViT-B/16's text vectors, ``(512, 2768)``."""
    bridge_mean: Vectors
    """The mean of MiniLM's vectors of words and of sentences about them."""
    image_mean: Vectors
    """The mean of unit image vectors."""
    fingerprint: str


@cache
def fitted_maps(path: Path = FITTED_FILE) -> FittedMaps:
    """Return the maps shipped with the package."""
    with np.load(path) as stored:
        arrays = {name: stored[name].astype(np.float32) for name in ("map", "bridge", "bridge_mean", "image_mean")}
    arrays["bridge"] = np.ascontiguousarray(arrays["bridge"].T)
    return FittedMaps(**arrays, fingerprint=hashlib.sha256(path.read_bytes()).hexdigest())


def mean_picture() -> Vectors:
    """Return the mean of CLIP's unit image vectors, which is subtracted before they are compared with texts."""
    return fitted_maps().image_mean


def centre_images(vectors: Vectors) -> Vectors:
    """Return CLIP's image vectors as stored: scaled to length 1, minus the mean picture, scaled to length 1 again."""
    return unit_vectors(unit_vectors(vectors) - mean_picture())


class ClipWordTable:
    """The vectors of words in ViT-B/16's text space, of length 1."""

    def __init__(self, words: Sequence[str], vectors: Vectors) -> None:
        self.rows = {word: row for row, word in enumerate(words)}
        self.vectors = vectors

    def __getitem__(self, word: str) -> Vectors:
        vector: Vectors = self.vectors[self.rows[word]].astype(np.float32)
        return vector

    def find(self, word: str) -> str:
        """Return the entry for a word or name in any of its forms, or an empty text."""
        return next((form for form in word_forms(word) if form in self.rows), "")


def load_word_table() -> ClipWordTable | None:
    """Return the word table, converted once and cached; None if it is not installed."""
    if not are_installed(TABLE):
        return None
    maps = fitted_maps()

    def make() -> bytes:
        vectors = read_word_vectors(verify(TABLE))
        mapped = unit_vectors(centre(np.array(list(vectors.values()))) @ maps.map).astype("<f2")
        return json.dumps(list(vectors)).encode() + b"\n" + mapped.tobytes()

    words, _, data = load_or_make("clip-words", f"{RECIPE} {TABLE.fingerprint} {maps.fingerprint}", make).partition(
        b"\n"
    )
    return ClipWordTable(json.loads(words), np.frombuffer(data, "<f2").reshape(-1, DIM))


def load_text_tower() -> TextTower | None:
    """Return CLIP's own text tower, or None if it is not downloaded."""
    if not read_lock(TOWER) or not model_folder(TOWER).is_dir():
        return None
    folder = check_model(find_hub_model(TOWER))
    tower = TextTower(folder, TOWER)
    if tower.dim != DIM:
        raise MomentseekError(f"{folder}: gives {tower.dim} numbers and not {DIM}; it is not ViT-B/16's text tower")
    return tower


def read_word_vectors(folder: Path) -> dict[str, Vectors]:
    """Read the table's names with their ViT-B/32 text vectors: words of Visual Genome, and two lists of things.

    The vectors are in the order of the sorted names, as their authors stored them.
    """
    seen = read_pickle(folder / "all_objects_attributes_relationships.pickle")["objects"]["joint"]
    things = json.loads((folder / "vgcocooiobjects_v1_class2ind.json").read_bytes())
    with (folder / "oidv7-class-descriptions-boxable.csv").open(encoding="utf-8", newline="") as file:
        boxed = [row["DisplayName"].lower().strip() for row in csv.DictReader(file)]
    lists = {
        "visual_genome_embedding": [name for name in seen if len(name.split()) == 1],
        "vgoi_embeddings": list(things),
        "open_image_embeddings": [name.partition("(")[0] if name.endswith(")") else name for name in boxed],
    }
    found: dict[str, Vectors] = {}
    for stem, names in lists.items():
        vectors = read_pickle(folder / f"{stem}_ViT-B32_with_ensemble.pickle").astype(np.float32)
        for name, vector in zip(sorted(name.lower().strip() for name in names), vectors, strict=True):
            found.setdefault(" ".join(split_words(name)), vector)
    found.pop("", None)
    return found


def centre(vectors: Vectors) -> Vectors:
    """Scale rows to length 1, subtract their mean, and scale them to length 1 again."""
    unit = unit_vectors(vectors)
    return unit_vectors(unit - unit.mean(axis=0))


def bridge_sentences(names: Sequence[str]) -> list[str]:
    """Return the bridge's input texts for names: all names, then a sentence about each."""
    return [*names, *(PROMPT.format(name) for name in names)]


def bridge_features(
    sentences: TextEncoder, names: Sequence[str], mean: Vectors | None = None
) -> tuple[Vectors, Vectors]:
    """Return the bridge's features of each name, and MiniLM's mean over them, unless one is given.

    The features are MiniLM's vectors of the name and of a sentence about it, and cosines of random mixtures of their
    numbers, with which a linear map approximates a Gaussian kernel (Rahimi and Recht, "Random Features for Large-Scale
    Kernel Machines", NIPS 2007).
    """
    count = len(names)
    rows = sentences.encode(bridge_sentences(names))
    given = np.concatenate([rows[:count], rows[count:]], axis=1)
    mean = given.mean(axis=0) if mean is None else mean
    signs, phases = _waves(given.shape[1])
    waves = np.cos(_row_products(given - mean, signs) + phases) * np.float32(np.sqrt(2 / BRIDGE_WAVES))
    return np.concatenate([waves, given - mean], axis=1).astype(np.float32), mean


@cache
def _waves(columns: int) -> tuple[Vectors, Vectors]:
    """Return random signs, one row per random feature, and phases; the same on every machine."""
    size = columns * BRIDGE_WAVES // 8
    data = hashlib.shake_256(b"clip bridge").digest(size + 4 * BRIDGE_WAVES)
    bits = np.unpackbits(np.frombuffer(data[:size], np.uint8)).reshape(columns, BRIDGE_WAVES)
    phases = np.frombuffer(data[size:], "<u4") * np.float32(2 * np.pi / 2**32)
    return np.ascontiguousarray(WAVE_SCALE * (2 * bits.T.astype(np.float32) - 1)), phases.astype(np.float32)


def _row_products(rows: Vectors, matrix: Vectors) -> Vectors:
    """Return ``rows @ matrix.T``, computed row by row.

    In a batch, BLAS gives a row other last bits, and its threads wait for each other longer than so few rows take.
    """
    return np.asarray(np.vecdot(rows[:, None], matrix))


class ClipWords:
    """The text side of CLIP ViT-B/16: texts as unit vectors to compare with centred image vectors."""

    name = "clip-words"
    dim = DIM

    def __init__(
        self,
        sentences: TextEncoder,
        find_table: Callable[[], ClipWordTable | None] = load_word_table,
        find_tower: Callable[[], TextEncoder | None] = load_text_tower,
    ) -> None:
        self._sentences = sentences
        self._find_table, self._find_tower = find_table, find_tower
        self._maps = fitted_maps()
        self._recent = RecentTexts(self._encode)
        self.read = lru_cache(256)(self._read)
        """Interpret a text: which words are in the table, which use the bridge, and which have no meaning."""

    @cached_property
    def _tower(self) -> TextEncoder | None:
        return self._find_tower()

    @cached_property
    def _table(self) -> ClipWordTable | None:
        return self._find_table()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything its vectors depend on."""
        if self._tower is not None:
            own = fingerprint_of(self._tower) or self._tower.name
            return hashlib.sha256(f"clip-text\n{RECIPE}\n{own}".encode()).hexdigest()
        sentences = fingerprint_of(self._sentences) or self._sentences.name
        parts = ("clip-words", RECIPE, self._maps.fingerprint, sentences, TABLE.fingerprint if self.has_table else "")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def has_table(self) -> bool:
        """Whether the word table is installed."""
        return self._table is not None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text; a text without any meaningful word is encoded as a whole by the bridge."""
        return self._recent(texts)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        if self._tower is not None:
            return unit_vectors(self._tower.encode(texts) - self._tower_mean)
        says = [_says(self.read(text).words) for text in texts]
        asked = list(dict.fromkeys(name for text in texts for name in self._bridged_names(text)))
        bridged = dict(zip(asked, self.bridge(asked), strict=True))
        rows = np.empty((len(texts), DIM), np.float32)
        for row, text, words in zip(rows, texts, says, strict=True):
            found = [self._vector(word, bridged) for word in words] or [bridged[text]]
            row[:] = unit_vectors(np.mean(found, axis=0, keepdims=True))[0]
            if len(words) > 1:
                row += SENTENCE_SHARE * bridged[text]
        return unit_vectors(rows)

    def _bridged_names(self, text: str) -> list[str]:
        """Return the words of a text that use the bridge, and the text itself unless it is one word."""
        words = _says(self.read(text).words)
        return [word.text for word in words if not word.entry] + ([text] if len(words) != 1 else [])

    def query_sentences(self, text: str) -> list[str]:
        """Return the sentences that a text needs from the sentence encoder; none if there is a text tower."""
        return [] if self._tower is not None else bridge_sentences(self._bridged_names(text))

    def bridge(self, texts: Sequence[str]) -> Vectors:
        """Return one row per word or name, using only the bridge."""
        if not texts:
            return np.empty((0, DIM), np.float32)
        features, _ = bridge_features(self._sentences, texts, self._maps.bridge_mean)
        return unit_vectors(_row_products(features, self._maps.bridge))

    def _read(self, text: str) -> TextReading:
        if self._tower is not None:
            return TextReading((), self.has_table, tower=self._tower.name)
        words = split_words(text)
        if is_foreign(words, self._table.rows if self._table else ()):
            return TextReading(tuple(ReadWord(word, "unknown") for word in words), self.has_table, foreign=True)
        found, at = [], 0
        while at < len(words):
            name, entry = self._longest_name(words[at:])
            found.append(ReadWord(name, self._source(name, entry), entry))
            at += name.count(" ") + 1
        return TextReading(tuple(found), self.has_table)

    def knows(self, text: str) -> bool:
        """Whether the encoder knows any word of a text."""
        if self._tower is not None:
            return True
        words = self.read(text).words
        return any(word.source != "unknown" for word in _says(words) or words)

    def suggestion(self, word: str) -> str:
        """Return a known word with nearly the same spelling as an unknown one, or an empty text."""
        return nearest_spelling(word, self._spellings)

    @cached_property
    def _spellings(self) -> frozenset[str]:
        """Return the words for spelling suggestions: the table's English words, since it also has misspelt ones."""
        english = english_words()[0]
        return english.intersection(self._table.rows) if self._table else english

    def _longest_name(self, words: Sequence[str]) -> tuple[str, str]:
        """Return the longest name of the table at the start of ``words``, and its entry; else the first word."""
        for size in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
            name = " ".join(words[:size])
            entry = self._table.find(name) if self._table and name not in STOP_WORDS else ""
            if entry or size == 1:
                return name, entry
        raise AssertionError("there is always a first word")

    def _source(self, name: str, entry: str) -> Source:
        if name in FOREIGN_WORDS:
            return "unknown"
        if name in STOP_WORDS or name in LETTERS:
            return "ignored"
        if entry:
            return "table"
        return "bridge" if is_english(name) or self._is_familiar(name) else "unknown"

    def _is_familiar(self, word: str) -> bool:
        """Whether MiniLM knows a word that is in no list: as one token, or as long tokens without a misspelling."""
        tokens = getattr(self._sentences, "tokens", None)
        if tokens is not None and len(tokens(word)) == 1 and word.isascii():
            return True
        strange = getattr(self._sentences, "unknown_words", None)
        if strange is not None and strange(word):
            return False
        return self._table is None or not nearest_spelling(word, self._spellings)

    def _vector(self, word: ReadWord, bridged: Mapping[str, Vectors]) -> Vectors:
        return self._table[word.entry] if self._table and word.entry else bridged[word.text]

    @cached_property
    def _tower_mean(self) -> Vectors:
        """Return the mean of the tower's vectors of many kinds of things, computed once and cached."""
        tower = self._tower
        assert tower is not None

        def make() -> bytes:
            mean: Vectors = tower.encode(sentences_for(label_names())).mean(axis=0)
            return mean.astype("<f4").tobytes()

        return np.frombuffer(load_or_make("clip-text-mean", self.fingerprint, make), "<f4")


def _says(words: Sequence[ReadWord]) -> list[ReadWord]:
    """Return the words whose vectors form a query's vector: the known ones, or else the unknown ones."""
    known = [word for word in words if word.source in ("table", "bridge")]
    return known or [word for word in words if word.source == "unknown"]
