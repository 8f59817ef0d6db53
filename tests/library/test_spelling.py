"""A word is found however it is written: in digits, in British or American English, short, or as a sign."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_library import OpenLibrary, WordVectors, fill, nothing

from momentseek.library import word_counts
from momentseek.library.spelling import spellings
from momentseek.library.word_counts import CUES, WordCounts, count_words, rank_texts
from momentseek.library.words import WordMatcher, content_words
from momentseek.media.subtitles.cues import Cue
from momentseek.search.engine import Engine
from momentseek.search.options import SearchOptions
from momentseek.search.query import Query

PAIRS = [
    ("two liters", "Take 2 litres of milk."),
    ("2 litres", "Take two liters of milk."),
    ("favourite colour", "My favorite color is red."),
    ("twenty-one people", "There were 21 people."),
    ("21 people", "There were twenty-one people."),
    ("five percent", "It grew by 5%."),
    ("5 %", "It grew by 5 percent."),
    ("doctor smith", "Dr. Smith will see you."),
    ("100 dollars", "It costs $100."),
    ("organised crime", "Organized crime."),
    ("1,000 miles", "We drove a thousand miles."),
    ("1000 miles", "We drove 1,000 miles."),
    ("first prize", "The 1st prize"),
]


@pytest.mark.parametrize(("asked", "said"), PAIRS)
def test_other_spellings_are_found_and_marked(tmp_path: Path, asked: str, said: str) -> None:
    others = [Cue(10 + 3 * i, 12 + 3 * i, text) for i, text in enumerate(("Nothing here.", "More of it.", "The end."))]
    catalog = fill(tmp_path, {"a.mp4": nothing(24, 0)}, {"a.mp4": [Cue(1, 3, said), *others]})
    on = Engine(OpenLibrary(tmp_path, catalog, WordVectors()))  # type: ignore[arg-type]
    (hit,) = on.search(Query.parse(f'said:"{asked}"'), SearchOptions(streams=("speech",)))
    assert (hit.level, hit.said[0].text) == ("strong", said)
    (marked,) = WordMatcher([said]).mark(content_words(asked), "[", "]")
    assert marked.count("[") == 2


def test_exact_words_stay_exact(tmp_path: Path) -> None:
    catalog = fill(
        tmp_path, {"a.mp4": nothing(24, 0)}, {"a.mp4": [Cue(1, 3, "Take 2 litres."), Cue(5, 8, "Two liters!")]}
    )
    on = Engine(OpenLibrary(tmp_path, catalog, WordVectors()))  # type: ignore[arg-type]
    (hit,) = on.search(Query.parse('"two liters"'), SearchOptions(streams=("speech",)))
    assert hit.said[0].text == "Two liters!"


def test_a_word_with_two_spellings_ranks_the_same_in_parts_of_a_library(tmp_path: Path) -> None:
    texts = ["two dogs", "2 dogs and 2 cats", "a cat", "many dogs", "two and 2 is four", *["nothing"] * 9]
    cues = [Cue(i, i + 1, text) for i, text in enumerate(texts)]
    whole = fill(tmp_path / "whole", {"a.mp4": nothing(24, 0)}, {"a.mp4": cues})
    parts = [fill(tmp_path / f"{at}", {"a.mp4": nothing(24, 0)}, {"a.mp4": cues[at::2]}) for at in (0, 1)]
    terms = ["two", "dogs"]
    total = count_words(whole, CUES, terms)
    assert total.of(["two"]) == [3], "a text with both spellings counts once"
    assert WordCounts.total(count_words(part, CUES, terms) for part in parts) == total
    ranked = rank_texts(whole, CUES, terms, None, 10, total)
    found = {}
    for at, part in enumerate(parts):
        some = rank_texts(part, CUES, terms, None, 10, total)
        found |= {2 * (id - 1) + at: score for id, score in some.table[[0, 2]].T.tolist()}
    assert found == pytest.approx({id - 1: score for id, score in ranked.table[[0, 2]].T.tolist()})
    assert np.argmax(ranked.table[2]) == 0


def test_nothing_else_is_taken_for_another_spelling() -> None:
    for word in ("four", "hour", "flour", "prize", "size", "for", "parameter", "filling", "dog"):
        assert all(other in (word, "4", "hr") for other in spellings(word)), word


@pytest.mark.parametrize("share", [0.0, 0.2, 1e9], ids=["lengths at once", "both ways", "lengths one by one"])
def test_texts_are_scored_as_sqlite_does_to_the_last_bit(tmp_path: Path, monkeypatch, share: float) -> None:
    monkeypatch.setattr(word_counts, "MAX_LOOKUP_SHARE", share)
    rng = np.random.default_rng(4)
    words = np.array(["dog", "dogs", "cat", "house", "running", "red", *(f"word{n}" for n in range(30))])
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(1, 40, 300)] + ["dog " * 200]
    catalog = fill(
        tmp_path, {"a.mp4": nothing(24, 0)}, {"a.mp4": [Cue(i, i + 1, text) for i, text in enumerate(texts)]}
    )
    sql = "SELECT rowid, -bm25(speech_words) FROM speech_words WHERE speech_words MATCH ? ORDER BY 2 DESC, 1"
    for terms in (["dog"], ["cat", "runs"], ["red", "word3", "house", "unicorn"]):
        for _ in range(2):  # the second time from the cache
            ranked = rank_texts(catalog, CUES, terms, None, 1000, count_words(catalog, CUES, terms))
            assert [*map(tuple, ranked.table[[0, 2]].T.tolist())] == catalog.rows(sql, (" OR ".join(terms),))


def test_cached_words_have_no_more_texts_than_allowed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(word_counts, "MAX_CACHED_TEXTS", 10)
    cues = [Cue(i, i + 1, text) for i, text in enumerate(["a dog", "a cat", "a dog and a cat", "a cow"] * 2)]
    catalog = fill(tmp_path, {"a.mp4": nothing(24, 0)}, {"a.mp4": cues})
    for _ in range(2):
        assert count_words(catalog, CUES, ["dog", "cat", "cow"]).of(["dog", "cat", "cow"]) == [4, 4, 2]
        assert sum(len(one.id) for one in catalog.read_cache(CUES.table).values()) <= 10


def test_a_changed_text_is_counted_at_once(tmp_path: Path) -> None:
    catalog = fill(tmp_path, {"a.mp4": nothing(24, 0)}, {"a.mp4": [Cue(1, 2, "a dog"), Cue(3, 4, "a cat")]})
    assert count_words(catalog, CUES, ["dog", "cat"]).of(["dog", "cat"]) == [1, 1]
    with catalog.changes():
        catalog.set_cues(1, [Cue(1, 2, "a dog"), Cue(3, 4, "two dogs")])
    total = count_words(catalog, CUES, ["dog", "cat"])
    assert total.of(["dog", "cat"]) == [2, 0]
    assert len(rank_texts(catalog, CUES, ["dog"], None, 10, total).texts) == 2


def test_which_words_a_text_holds_is_read_from_the_index(tmp_path: Path) -> None:
    said = ["two dogs at 5%", "a dog and the CAT", "running cats", "nothing"]
    catalog = fill(tmp_path, {"a.mp4": nothing(24, 0)}, {"a.mp4": [Cue(i, i + 1, text) for i, text in enumerate(said)]})
    asked = ["2", "dog", "cats", "run", "percent", "unicorn"]
    ranked = rank_texts(catalog, CUES, ["dog", "cats"], None, 10, count_words(catalog, CUES, asked), asked)
    found = dict(zip(ranked.texts, ranked.holds.tolist(), strict=True))
    assert found == {
        "two dogs at 5%": [True, True, False, False, True, False],
        "a dog and the CAT": [False, True, True, False, False, False],
        "running cats": [False, False, True, True, False, False],
    }
    for text, holds in found.items():
        assert WordMatcher([text]).matches(asked).tolist() == [holds]
    times = ranked.table[3:6, ranked.texts.index("running cats")]
    assert times.tolist() == [2.0, 3.0, 2.0]


def test_equal_texts_are_in_the_order_of_their_videos(tmp_path: Path) -> None:
    films = {f"{name}.mp4": nothing(24, i) for i, name in enumerate("abc")}
    catalog = fill(tmp_path, films, {name: [Cue(1, 2, "a dog"), Cue(5, 6, "a dog")] for name in films})
    with catalog.changes():  # the first video's texts get the highest numbers
        catalog.set_cues(1, [Cue(1, 2, "a dog"), Cue(5, 6, "a dog")])
    total = count_words(catalog, CUES, ["dog"])
    ranked = rank_texts(catalog, CUES, ["dog"], None, 3, total)
    assert ranked.videos == [1, 1, 2]
    assert rank_texts(catalog, CUES, ["dog"], np.array([2, 3]), 3, total).videos == [2, 2, 3]
