"""Texts of several searches are encoded together, and found again by each search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.encoders.text_cache import RecentTexts
from momentseek.search.query import Query
from momentseek.search.session import vision_texts
from momentseek.search.state import QueryEncoder


class Sentences:
    """An encoder of sentences that remembers, and counts its runs."""

    def __init__(self) -> None:
        self.runs: list[list[str]] = []
        self.remember = RecentTexts(self._encode)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        self.runs.append(list(texts))
        return np.ones((len(texts), 2), np.float32)


class Asking:
    """An encoder of pictures that asks an encoder of sentences for each word of a query."""

    name, dim = "asking", 2

    def __init__(self, sentences: Sentences | None) -> None:
        self.encoded: list[list[str]] = []
        if sentences is not None:
            self.sentences = sentences
            self.query_sentences = str.split

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.encoded.append(list(texts))
        return np.ones((len(texts), 2), np.float32)


class Encoders:
    def __init__(self, vision: Asking) -> None:
        self.vision = vision

    def for_queries(self, stream: str) -> Asking:
        return self.vision


def test_all_queries_are_one_run_and_known_words_none() -> None:
    sentences = Sentences()
    encoder = QueryEncoder(Encoders(Asking(sentences)))  # type: ignore[arg-type]
    encoder.prepare(["a dog", "a cat"])
    encoder.prepare(["a dog", "the cat"])
    assert sentences.runs == [["a", "dog", "cat"], ["the"]]


def test_an_encoder_without_sentences_encodes_the_texts_themselves_once() -> None:
    vision = Asking(None)
    encoder = QueryEncoder(Encoders(vision))  # type: ignore[arg-type]
    encoder.prepare(["a dog", "a cat"])
    assert encoder.encode("vision", ["a cat"]).shape == (1, 2)
    assert vision.encoded == [["a dog", "a cat"]]


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("a dog", ["a dog"]),
        ("a dog 2:park -leash", ["a dog", "park", "leash", "a dog park"]),
        ("said:hello", []),
    ],
)
def test_the_texts_of_a_query(query: str, texts: list[str]) -> None:
    assert vision_texts(Query.parse(query)) == texts


def test_what_is_no_query_hinders_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from momentseek.api.library import Library

    with Library.open(tmp_path / "library", create=True) as library:
        seen: list[Query] = []
        monkeypatch.setattr(library.engine, "prepare", seen.extend)
        with pytest.raises(MomentseekError):
            Query.parse('"')
        library.prepare(["a dog", '"', "a cat"])
        assert [query.text for query in seen] == ["a dog", "a cat"]
