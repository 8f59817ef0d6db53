"""Genders, spellings, and what a text's words are."""

from __future__ import annotations

from collections import Counter

import pytest

from momentseek.benchmarks.datasets.imprecise.names import (
    build_gazetteer,
    decide_gender,
    edit_distance,
    read_names,
    write_names,
)
from momentseek.benchmarks.datasets.imprecise.words import EITHER_NAMES, FEMALE_NAMES, MALE_NAMES, split_tokens
from momentseek.core.errors import MomentseekError


def test_tokens_keep_their_places():
    text = "Ross' mug, D'Andre’s hat and Dr. 13's \"House\". She sits!"
    words = split_tokens(text)
    assert " ".join(t.text for t in words) == "Ross mug D'Andre hat and Dr 13 s House She sits"
    assert all(text[t.start : t.end] == t.text for t in words)
    assert [t.text for t in words if t.own] == ["Ross", "D'Andre"]
    assert [t.text for t in words if t.first] == ["Ross", "She"]


@pytest.mark.parametrize(
    ("name", "pronouns", "gender"),
    [
        ("Beckett", {"female": 9, "male": 1}, "female"),
        ("Beckett", {"female": 3, "male": 3}, "neutral"),
        ("Elodie", {"female": 1}, "female"),
        ("Monica", {"male": 5}, "female"),
        ("Alexis", {"male": 20}, "male"),
        ("Robin", {}, "neutral"),
        ("House", {}, "neutral"),
    ],
)
def test_gender(name, pronouns, gender):
    assert decide_gender(name, Counter(pronouns)) == gender


def test_the_table_is_consistent():
    assert not FEMALE_NAMES & MALE_NAMES
    assert len(FEMALE_NAMES | MALE_NAMES | EITHER_NAMES) > 900


def test_slips_are_symmetric():
    assert edit_distance("beckett", "becektt") == edit_distance("becektt", "beckett") == 1
    assert edit_distance("", "ab") == 2


def test_names_of_the_user(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("# cast\nRick Castle,m\n\nOreo, word\nQuill\n")
    assert read_names(path) == [("Rick", "male"), ("Castle", "male"), ("Oreo", "word"), ("Quill", "")]
    path.write_text("Rick,maybe\n")
    with pytest.raises(MomentseekError, match=r"line 1 is 'Rick,maybe'; expected name,gender"):
        read_names(path)


def test_what_is_saved_can_be_read(tmp_path):
    found = build_gazetteer([("Elodie hugs Ross.", ""), ("He sees Elodie.", "")])
    (tmp_path / "n.csv").write_bytes(write_names(found))
    assert ("Ross", "male") in read_names(tmp_path / "n.csv")
