"""Prepare feature rows as a model's input: fit, normalise, add endpoints if asked for, and pad them.

Training and inference both use this module, so a model searches with the preparation that it was trained with.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from momentseek.core.errors import MomentseekError
from momentseek.core.language import Roles, load_parser
from momentseek.models.batch import Clips, Words
from momentseek.models.features.data import Data, DataSplit, Dims
from momentseek.models.features.store import ArrayCache, Features
from momentseek.models.model import ModelConfig
from momentseek.models.tower_files import find_tower, tower_tokens
from momentseek.recognition.captions.inputs import caption_words
from momentseek.recognition.exported.preparation import MODALITIES

PADDING, BEGIN, END, UNKNOWN = range(4)
"""The first entries of a vocabulary: padding, the beginning and the end of a sentence, and an unknown word."""
NOWHERE = torch.iinfo(torch.int64).max
"""The value of unused entries of a vocabulary."""
Floats = NDArray[np.float32]


@cache
def word_id(word: str) -> int:
    """The number of a word: a hash of its letters, from 1 to 2^63 - 2.

    >>> word_id("door") == word_id("door"), word_id("door") == word_id("doors")
    (True, False)
    """
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest()) % (NOWHERE - 1) + 1


def word_ids(texts: Sequence[str], most: int) -> Tensor:
    """(texts, ``most``): the numbers of the first ``most`` words of each text; 0 in the padding.

    The width does not depend on the texts, because a text and its feature rows can differ in length.
    """
    rows = [[word_id(word) for word in caption_words(text)[:most]] for text in texts]
    for text, row in zip(texts, rows, strict=True):
        if not row:
            raise MomentseekError(f"a query has no text ({text!r}), and the model reads its words; give the texts")
    found = torch.zeros(len(rows), most, dtype=torch.long)
    for i, row in enumerate(rows):
        found[i, : len(row)] = torch.tensor(row)
    return found


class KnownWords(nn.Module):
    """The vocabulary of a model: the sorted numbers of its words, saved with its weights."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.known = nn.Buffer(torch.full((size,), NOWHERE, dtype=torch.long))

    @property
    def entries(self) -> int:
        """Number of entries, including the special ones."""
        return len(self.known) + UNKNOWN + 1

    def learn(self, texts: Iterable[str]) -> None:
        """Fill the vocabulary with the most frequent words of some texts; ties are broken alphabetically."""
        seen = Counter(word for text in texts for word in caption_words(text))
        chosen = sorted(seen, key=lambda word: (-seen[word], word))[: len(self.known)]
        self.known.fill_(NOWHERE)
        if chosen:
            self.known[: len(chosen)] = torch.tensor(sorted(map(word_id, chosen)))

    def forward(self, ids: Tensor) -> Tensor:
        """The entries of the vocabulary for word numbers of any shape.

        >>> words = KnownWords(5)
        >>> words.learn(["a dog runs"])
        >>> sorted(words(word_ids(["a dog runs"], 3)).tolist()[0]), words(word_ids(["cat"], 2)).tolist()
        ([4, 5, 6], [[3, 0]])
        """
        place = torch.searchsorted(self.known, ids).clamp(max=len(self.known) - 1)
        found = torch.where(self.known[place] == ids, place + UNKNOWN + 1, UNKNOWN)
        return torch.where(ids == 0, PADDING, found)


def clips_of(data: Data, names: Sequence[str], config: ModelConfig, cache: ArrayCache | None = None) -> Clips:
    """Prepare the clips of videos for a model with this config, padded to the longest video."""
    kept, used = cache if cache is not None else ArrayCache(0), tables(data, config)

    def rows(table: Features, name: str, modality: str) -> Floats:
        def prepare() -> Floats:
            count = None if None in used else data.rows(name)  # which both have
            return config.preparation.prepare_clips(table.read(name)[:count], modality)

        return kept.get((modality, name), prepare)

    video, subtitle = (
        [rows(table, name, modality) for name in names] if table is not None else None
        for modality, table in zip(MODALITIES, used, strict=True)
    )
    return stack_clips(video, subtitle, names)


def words_of(split: DataSplit, query_ids: Sequence[str], config: ModelConfig, cache: ArrayCache | None = None) -> Words:
    """Prepare the first ``max_words`` words of queries for a model with this config, padded to the longest query."""
    kept = cache if cache is not None else ArrayCache(0)

    def rows(query: str) -> Floats:
        found = kept.get(
            ("query", query), lambda: config.preparation.prepare_words(split.query.read(query)[: config.max_words])
        )
        if not len(found):
            raise MomentseekError(f"query {query} has no words; leave it out or encode its text again")
        return found

    parts = [rows(str(query)) for query in query_ids]
    tower = find_tower(getattr(config, "tower", None))
    if tower is None and not needs_roles(config) and not needs_text(config):
        return stack_words(parts)
    texts = [split.truth.text(str(query)) or "" for query in query_ids]
    if tower is not None:
        return replace(stack_words(parts), ids=tower_tokens(tower, texts, config.max_words))
    if needs_text(config):
        return replace(stack_words(parts), ids=word_ids(texts, config.max_words))
    return stack_words(parts, texts, [split.query.rows(str(query)) for query in query_ids], role_parser(config))


def tables(data: Data, config: ModelConfig) -> tuple[Features | None, Features | None]:
    """The video and the subtitle features; None for a modality that the model does not use."""
    used = config.modality_names
    video, subtitle = data.video if "video" in used else None, data.subtitle if "subtitle" in used else None
    for name, table in (("video", video), ("subtitle", subtitle)):
        if name in used and table is None:
            raise MomentseekError(f"the data have no {name} features, and the model needs them; set modalities")
    return video, subtitle


def dims_of(data: Data, config: ModelConfig, split: str | None = None) -> Dims:
    """The number of columns of the features that a model with this config uses.

    Queries are those of ``split``, by default of the first one. A model adds the two columns of endpoints itself.
    """
    columns = data.dims_of(split) if split else data.dims
    video, subtitle = tables(data, config)
    return Dims(
        columns.query,
        columns.video if video is not None else None,
        columns.subtitle if subtitle is not None else None,
    )


def stack_clips(video: Sequence[Floats] | None, subtitle: Sequence[Floats] | None, names: Sequence[str]) -> Clips:
    """Stack the prepared rows of several videos into a padded batch."""
    for name, v, s in zip(names, video or (), subtitle or (), strict=False):
        if len(v) != len(s):
            raise MomentseekError(
                f"video {name} has {len(v)} clips of video features and {len(s)} of subtitle features; make them agree"
            )
    seen = video if video is not None else subtitle
    if seen is None:
        raise MomentseekError("a model needs video or subtitle features; give one of them")
    for name, rows in zip(names, seen, strict=True):
        if not len(rows):
            raise MomentseekError(f"video {name} has no clips; leave it out or extract its features again")
    mask = pad_rows(seen)[1]
    first, second = (None if part is None else pad_rows(part)[0] for part in (video, subtitle))
    return Clips(first, second, mask)


def needs_roles(config: ModelConfig) -> bool:
    """Whether the model uses the roles of a query's words, such as verb and noun (MDD's tree)."""
    return bool(getattr(config, "tree", False))


def needs_text(config: ModelConfig) -> bool:
    """Whether the model reads the texts of queries, in addition to their features (WSSL)."""
    return bool(getattr(config, "vocabulary", 0))


def role_parser(config: ModelConfig) -> str:
    """Name of the parser that finds the roles of words for a model: ``auto``, ``spacy`` or ``rules``."""
    return str(getattr(config, "parse", "auto"))


def stack_words(
    parts: Sequence[Floats], texts: Sequence[str] | None = None, counts: Sequence[int] | None = None,
    parse: str = "auto",
) -> Words:  # fmt: skip
    """Stack the prepared rows of several queries into a padded batch; with ``texts``, add the role of each word.

    ``counts`` has the number of rows of each query before it was cut to ``max_words``, to assign rows to words.

    >>> stack_words([np.ones((3, 2), np.float32)], ["she opens doors"]).roles.tolist()
    [[0, 1, 2]]
    """
    features, mask = pad_rows(parts)
    if texts is None:
        return Words(features, mask)
    roles, phrase = torch.zeros(mask.shape, dtype=torch.long), torch.full(mask.shape, -1)
    had = counts if counts is not None else [len(part) for part in parts]
    for row, (part, text, count) in enumerate(zip(parts, texts, had, strict=True)):
        left = len(part)
        of_words, of_phrases = _parse_roles(text, parse).fit_to_features(count)
        roles[row, :left], phrase[row, :left] = torch.tensor(of_words[:left]), torch.tensor(of_phrases[:left])
    return Words(features, mask, roles, phrase)


@cache
def _parse_roles(text: str, parse: str) -> Roles:
    return load_parser(parse)([text])[0]


def pad_rows(parts: Sequence[Floats]) -> tuple[Tensor, Tensor]:
    """Stack tables with different numbers of rows into a tensor padded with zeros, and return the mask of real rows.

    >>> features, mask = pad_rows([np.ones((1, 2), np.float32), np.ones((2, 2), np.float32)])
    >>> features[:, :, 0].tolist(), mask.tolist()
    ([[1.0, 0.0], [1.0, 1.0]], [[True, False], [True, True]])
    """
    counts = np.array([len(p) for p in parts], dtype=np.int64)
    longest = int(counts.max(initial=0))
    block = np.zeros((len(parts), longest, parts[0].shape[1] if len(parts) else 0), dtype=np.float32)
    for row, part in zip(block, parts, strict=True):
        row[: len(part)] = part
    return torch.from_numpy(block), torch.from_numpy(np.arange(longest) < counts[:, None])
