"""Forms, languages and spellings of the words of queries."""

import pytest

from momentseek.recognition.encoders.english import (
    is_english,
    is_foreign,
    nearest_spelling,
    one_letter_off,
    split_words,
    word_forms,
)


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("women", "woman"), ("children", "child"), ("puppies", "puppy"), ("benches", "bench"), ("dogs", "dog"),
        ("running", "run"), ("dancing", "dance"), ("jumped", "jump"), ("hopped", "hop"), ("hot dogs", "hot dog"),
        ("piñatas", "pinata"), ("dog", "dogs"),
    ],
)  # fmt: skip
def test_forms_lead_to_the_word(form, word):
    found = word_forms(form)
    assert found[0] == form
    assert word in found or any(word in word_forms(other) for other in found)


@pytest.mark.parametrize("word", ["bus", "gas", "is"])
def test_short_words_keep_their_end(word):
    assert word_forms(word)[0] == word
    assert "" not in word_forms(word)


def test_english_words_and_names():
    assert all(map(is_english, ["door", "dancing", "parachutes", "knives", "Eiffel", "aerobics"]))
    assert not any(map(is_english, ["hund", "perro", "qwertz", "chien", "犬", ""]))
    assert not is_english("Eiffel", names=False)


def test_known_word_is_not_foreign():
    assert is_foreign(["el", "zorgl"])
    assert not is_foreign(["el", "zorgl"], {"zorgl"})
    assert not is_foreign([])
    assert not is_foreign(split_words("the man and the dog"))


def test_spellings():
    known = {"dog", "dogs", "giraffe", "bicycle", "cat"}
    assert nearest_spelling("dgo", known) == "dog"
    assert nearest_spelling("Girafe", known) == "giraffe"
    assert nearest_spelling("bicicle", known) == "bicycle"
    assert nearest_spelling("cap", known) == ""
    assert nearest_spelling("zebra", known) == ""
    assert nearest_spelling("dog", set()) == ""
    assert "dog" not in set(one_letter_off("dog"))
    assert {"og", "odg", "fog", "drog"} <= set(one_letter_off("dog"))
