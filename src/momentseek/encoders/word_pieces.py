"""WordPiece tokens (Devlin et al., BERT, NAACL 2019): of plain English at once, of all else by the library for it.

Loading the library and its form of the vocabulary takes longer than all other work of a search in a small collection,
and most queries are a few words in printable ASCII, of which a word's pieces are quickly found. Tests hold that both
ways give the same tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import orjson

from momentseek.optional import optional_module

START, END, UNKNOWN, CONTINUED = "[CLS]", "[SEP]", "[UNK]", "##"
MAX_WORD_LETTERS = 100
"""Letters of a word beyond which it is unknown as a whole."""
MAX_PLAIN_TEXTS = 16
"""Texts beyond which the library is quicker, its loading included."""
_PLAIN = re.compile(r"[ -Z\\-~\t\n\r]*")
"""A text of printable ASCII that cannot contain a mark such as [MASK]."""
_WORDS = re.compile(r"[a-z0-9]+|[^a-z0-9\s]")


class TokenizedText(Protocol):
    """The tokens of a text."""

    @property
    def ids(self) -> list[int]: ...

    @property
    def tokens(self) -> list[str]: ...

    @property
    def special_tokens_mask(self) -> list[int]: ...


@dataclass(frozen=True)
class PlainTokens:
    """The tokens of a plain text; 1 in the mask stands for a mark around it."""

    ids: list[int]
    tokens: list[str]
    special_tokens_mask: list[int]


class WordPieceTokenizer:
    """BERT's tokenizer, lower case, from a ``tokenizer.json``; texts are cut to ``max_tokens`` with their marks."""

    def __init__(self, file: Path, max_tokens: int, extra: str) -> None:
        self._file, self._max_tokens, self._extra = file, max_tokens, extra
        self._vocabulary: dict[str, int] = orjson.loads(file.read_bytes())["model"]["vocab"]

    def encode(self, text: str, *, marks: bool = True) -> TokenizedText:
        """The tokens of a text, with the marks around it or without."""
        plain = self._encode_plainly(text, marks)
        return self._library.encode(text, add_special_tokens=marks) if plain is None else plain

    def encode_all(self, texts: Sequence[str]) -> Sequence[TokenizedText]:
        """The tokens of each of several texts, with their marks."""
        if len(texts) <= MAX_PLAIN_TEXTS:
            plain = [self._encode_plainly(text, True) for text in texts]
            if None not in plain:
                return [tokens for tokens in plain if tokens is not None]
        encoded: list[TokenizedText] = self._library.encode_batch(list(texts))
        return encoded

    def _encode_plainly(self, text: str, marks: bool) -> PlainTokens | None:
        if not _PLAIN.fullmatch(text):
            return None
        tokens = [piece for word in _WORDS.findall(text.lower()) for piece in self._pieces(word)]
        if len(tokens) + 2 > self._max_tokens:
            return None
        mask = [0] * len(tokens)
        if marks:
            tokens, mask = [START, *tokens, END], [1, *mask, 1]
        return PlainTokens([self._vocabulary[token] for token in tokens], tokens, mask)

    def _pieces(self, word: str) -> list[str]:
        """The longest known beginning of a word, then of what is left of it, and so on."""
        pieces: list[str] = []
        at = 0
        while at < len(word) <= MAX_WORD_LETTERS:
            before = CONTINUED if at else ""
            ends = (end for end in range(len(word), at, -1) if before + word[at:end] in self._vocabulary)
            if (end := next(ends, 0)) == 0:
                return [UNKNOWN]
            pieces.append(before + word[at:end])
            at = end
        return pieces or [UNKNOWN]

    @cached_property
    def _library(self) -> Any:
        tokenizer = optional_module("tokenizers", self._extra).Tokenizer.from_file(str(self._file))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_tokens)
        return tokenizer
