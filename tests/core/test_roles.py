"""Verbs, nouns, and which noun belongs to which verb."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recognition.encoders.fakes import needs_minilm

from momentseek.core.errors import MomentseekError
from momentseek.core.language import NEITHER, NOUN, VERB, load_parser, roles_by_rule
from momentseek.recognition.encoders.protocol import WordEncoder
from momentseek.recognition.encoders.registry import text_encoder


@given(st.text(max_size=80))
def test_any_text_has_a_role_and_a_phrase_per_word(text: str) -> None:
    found = roles_by_rule(text)
    assert len(found.words) == len(found.role) == len(found.phrase)
    verbs = found.role.count(VERB)
    for role, phrase in zip(found.role, found.phrase, strict=True):
        assert (phrase == -1) == (role == NEITHER or not verbs)
        assert phrase < max(verbs, 1)
    assert [p for r, p in zip(found.role, found.phrase, strict=True) if r == VERB] == list(range(verbs))


def test_query_without_verbs_has_no_phrases() -> None:
    found = roles_by_rule("a red car")
    assert found.role == (NEITHER, NOUN, NOUN)
    assert set(found.phrase) == {-1}


def test_no_roles_for_other_token_counts() -> None:
    found = roles_by_rule("a man opens the door")
    assert found.fit_to_features(3)[0] == [NEITHER, NOUN, VERB]
    assert found.fit_to_features(9) == ([NEITHER] * 9, [-1] * 9)


def test_rules_parse_many(root) -> None:  # type: ignore[no-untyped-def]
    one, two = load_parser("rules")(["she sits", "he eats an apple"])
    assert one.role == (NEITHER, VERB)
    assert two.phrase == (-1, 0, -1, 0)


def test_spacy_attaches_nouns_by_the_parse() -> None:
    pytest.importorskip("spacy")
    try:
        (found,) = load_parser("spacy")(["The man in the kitchen opens a cupboard and takes out two plates."])
    except MomentseekError:
        pytest.skip("spaCy's English model is not installed")
    by_word = dict(zip(found.words, found.phrase, strict=True))
    assert (by_word["opens"], by_word["takes"], by_word["man"], by_word["plates"]) == (0, 1, 0, 1)


def test_unknown_parser_is_named() -> None:
    with pytest.raises(MomentseekError, match="no parser 'nltk'"):
        load_parser("nltk")


@needs_minilm
def test_full_stop_does_not_matter() -> None:
    encoder = text_encoder("minilm")
    assert isinstance(encoder, WordEncoder)
    for text in ("The man opens a door.", "the man opens a door", "The man's dog, barking, runs (fast)!"):
        (rows,) = encoder.words([text])
        role, phrase = roles_by_rule(text).fit_to_features(len(rows))
        assert VERB in role
        assert NOUN in role
        assert max(phrase) >= 0
        assert len(role) == len(phrase) == len(rows)
    assert set(roles_by_rule("antidisestablishmentarianism opens").fit_to_features(9)[0]) == {NEITHER}
