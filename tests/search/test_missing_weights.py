"""Searching where the weights of the encoders are not downloaded."""

from pathlib import Path

import pytest

from momentseek.api.library import Library
from momentseek.core.errors import MissingWeightsError
from momentseek.library import encoders


def test_words_are_found_without_any_weights(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise MissingWeightsError(
            "the weights of minilm are not downloaded; get them with: momentseek models get minilm"
        )

    monkeypatch.setattr(encoders, "load_encoder", missing)
    monkeypatch.setattr(encoders, "text_encoder", missing)
    with Library.open(sample / "library", create=False) as library:
        found = library.search("the old money", k=1)
        assert [hit.name for hit in found] == ["trip.mp4"]
        assert found.note.startswith("only words are searched: the weights of minilm are not downloaded; get them with")
        nothing = library.search("a cat", k=1)
        assert not list(nothing)
        assert "only words are searched" in nothing.note
