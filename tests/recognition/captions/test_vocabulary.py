from __future__ import annotations

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.recognition.captions.inputs import SPECIAL_WORDS, Vocabulary, build_vocabulary


def test_words_must_occur_more_often_than_the_threshold() -> None:
    captions = [["cat"]] * 6 + [["dog"]] * 5 + [["a", "a"]] * 4
    assert build_vocabulary(captions).words == (*SPECIAL_WORDS, "a", "cat")
    assert build_vocabulary(captions, more_than=4).words == (*SPECIAL_WORDS, "a", "cat", "dog")


def test_special_words_stay_special() -> None:
    assert build_vocabulary([["[EOS]", "end"]], more_than=0).words == (*SPECIAL_WORDS, "end")


def test_numbers_and_text_round_trip() -> None:
    known = build_vocabulary([["nora", "hands", "the", "mug"]], more_than=0)
    assert known.text(known.numbers(["the", "mug", "hands", "nora"])) == "the mug hands nora"
    assert known.text([*known.numbers(["the"]), known.number["[EOS]"], 9]) == "the"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("a", "b"), "begins with"),
        ((*SPECIAL_WORDS, "a", "a"), "'a' twice"),
        ((*SPECIAL_WORDS, ""), "1 to 200 characters"),
        ((*SPECIAL_WORDS, "x" * 201), "1 to 200 characters"),
    ],
)
def test_rejects_invalid_vocabulary(words: tuple[str, ...], what: str) -> None:
    with pytest.raises(MomentseekError, match=what):
        Vocabulary(words)
