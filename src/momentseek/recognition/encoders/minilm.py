"""The sentence encoder all-MiniLM-L6-v2 on ONNX Runtime: 384 numbers per sentence, no network, no torch.

The token vectors of the last layer are averaged over the sentence's tokens and scaled to length 1, as in training
(Reimers and Gurevych, Sentence-BERT, EMNLP 2019, section 3: MEAN pooling).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from momentseek.core.errors import optional_module
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.encoders.text_cache import RecentTexts
from momentseek.recognition.runtime import session
from momentseek.recognition.weights.files import packaged_weights, verify

ASSET = packaged_weights("minilm")
DIM = 384
MAX_TOKENS = 256
"""The model's own limit; the tokenizer file in the package says 128, which would truncate long subtitles."""
TEXTS_PER_BATCH = 32
MIN_FILLED = 0.7
"""Texts in a batch have at least this share of the longest text's tokens …"""
RUN_TOKENS = 12
"""… unless a separate run would cost more than the padding; starting a run takes as long as this many tokens."""
MAX_REMEMBERED = 4096
"""Number of cached vectors of texts: queries share most of their words."""
MIN_PIECE = 2.7
"""Minimum mean length of a known word's tokens."""


class MiniLM:
    """The sentence encoder all-MiniLM-L6-v2; a text's vector does not depend on the others it is encoded with."""

    name = "minilm"
    dim = DIM

    def __init__(self, session: Any, tokenizer: Any, fingerprint: str) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self.fingerprint = fingerprint
        self._recent = RecentTexts(self._encode_texts, MAX_REMEMBERED)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text; longer texts than 256 tokens are truncated. Recent texts are cached."""
        return (self._recent if len(texts) <= TEXTS_PER_BATCH else self._encode_texts)(texts)

    def remember(self, texts: Sequence[str]) -> None:
        """Encode all texts that are not cached, in one call."""
        self._recent(texts)

    def _encode_texts(self, texts: Sequence[str]) -> Vectors:
        if len(texts) <= TEXTS_PER_BATCH:  # waking threads would take longer
            tokens = [self._tokenizer.encode(text).ids for text in texts]
        else:
            tokens = [e.ids for e in self._tokenizer.encode_batch(list(texts))]
        rows = np.empty((len(tokens), DIM), dtype=np.float32)
        for batch in _batches([len(t) for t in tokens]):
            rows[batch] = self._encode([tokens[i] for i in batch])
        return rows

    def knows(self, text: str) -> bool:
        """Whether it was trained on any word of a text; its vocabulary is English plus letters of other scripts."""
        tokens = self._tokenizer.encode(text, add_special_tokens=False).tokens
        return any(token != "[UNK]" and token.isascii() and token.strip("#").isalnum() for token in tokens)

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that were rare in training: those that split into short tokens.

        Rare English words are split too, but mostly into longer tokens ("para glider", but "q wer tz").
        """
        return [word for word in re.findall(r"\w+", text) if not self._is_familiar(word)]

    def _is_familiar(self, word: str) -> bool:
        tokens = self._tokenizer.encode(word, add_special_tokens=False).tokens
        if not tokens or not all(token != "[UNK]" and token.isascii() for token in tokens):
            return False
        return len(tokens) == 1 or sum(len(token.removeprefix("##")) for token in tokens) >= MIN_PIECE * len(tokens)

    def words(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the last layer's token vectors, one table per text, without start and end marks, for training models.

        A text without any token keeps its marks, so that a table is never empty.
        """
        encoded = self._tokenizer.encode_batch(list(texts))
        own = [[i for i, mark in enumerate(e.special_tokens_mask) if not mark] or [*range(len(e.ids))] for e in encoded]
        tables: list[Vectors] = [np.empty((0, DIM), np.float32)] * len(encoded)
        for batch in _batches([len(e.ids) for e in encoded]):
            hidden, _ = self._hidden([encoded[i].ids for i in batch])
            for states, i in zip(hidden, batch, strict=True):
                tables[i] = np.ascontiguousarray(states[own[i]], np.float32)
        return tables

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of the rows of ``words``; a token that continues a word begins with ``##``."""
        encoded = self._tokenizer.encode(text)
        own = [t for t, mark in zip(encoded.tokens, encoded.special_tokens_mask, strict=True) if not mark]
        return own or list(encoded.tokens)

    def _encode(self, tokens: list[list[int]]) -> Vectors:
        hidden, mask = self._hidden(tokens)
        weight = mask[:, :, None].astype(np.float32)
        mean = (hidden * weight).sum(axis=1) / weight.sum(axis=1)
        unit: Vectors = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit

    def _hidden(self, tokens: list[list[int]]) -> tuple[Vectors, NDArray[np.int64]]:
        """Return the last layer of each token, and the mask of padding."""
        ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, own in enumerate(tokens):
            ids[row, : len(own)] = own
            mask[row, : len(own)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (hidden,) = self._session.run(["last_hidden_state"], given)
        return hidden, mask


def load_minilm(folder: Path | None = None, threads: int | None = None) -> MiniLM:
    """Load the encoder from its package, or from a folder with the same three files."""
    folder = verify(ASSET) if folder is None else folder
    network = session(folder / "onnx/model.onnx", threads, ASSET.extra)
    tokenizer = optional_module("tokenizers", ASSET.extra).Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return MiniLM(network, tokenizer, ASSET.fingerprint)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of indices of texts with similar lengths, longest first, to reduce padding.

    >>> import momentseek.recognition.encoders.minilm as minilm
    >>> list(minilm._batches([3, 19, 3, 18])), list(minilm._batches([3, 9, 3, 8]))
    ([[1, 3], [0, 2]], [[1, 3, 0, 2]])
    """
    batch: list[int] = []
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable").tolist()
    for done, at in enumerate(order):
        if batch:
            longest = lengths[batch[0]]
            padding = (longest - lengths[at]) * min(len(order) - done, TEXTS_PER_BATCH - len(batch))
            apart = lengths[at] < MIN_FILLED * longest and padding > RUN_TOKENS
            if len(batch) == TEXTS_PER_BATCH or apart:
                yield batch
                batch = []
        batch.append(at)
    if batch:
        yield batch
