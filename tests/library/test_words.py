import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from momentseek.library.words import TOKENIZER, WordMatcher, content_words, match_any, plain_words, words


@given(st.text(max_size=40), st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=4))
def test_any_text_makes_a_safe_expression(text, raw):
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"CREATE VIRTUAL TABLE t USING fts5 (text, tokenize='{TOKENIZER}')")
        for expression in (match_any(content_words(text)), match_any(words(text)), match_any(raw)):
            if expression:
                storable = expression.encode("utf-8", "replace").decode()
                db.execute("SELECT 1 FROM t WHERE t MATCH ?", (storable,)).fetchall()


@given(st.lists(st.sampled_from(["dog", "dogs", "runs", "the", "Café"]), min_size=1, max_size=6))
def test_a_text_matches_its_own_words(parts):
    text = " ".join(parts)
    assert WordMatcher([text]).matches(words(text)).all()


def test_marks_are_put_around_stems_and_accents():
    matcher = WordMatcher(["The DOGS ran to the café", "nothing here"])
    assert matcher.mark(["dog", "cafe"], "<", ">") == ["The <DOGS> ran to the <café>", "nothing here"]
    assert matcher.mark([], "<", ">") == matcher.texts


def test_expressions_are_words_not_operators():
    matcher = WordMatcher(["cats AND dogs", "cats"])
    assert matcher.matches(["and", "cats OR dogs"]).tolist() == [[True, False], [False, False]]


def test_many_signs_between_words_are_all_taken_away():
    marks = "".join(chr(c) for c in range(0x2190, 0x2300))
    assert plain_words([f"Été{marks}là_bas", "x"]) == ["ete la bas", "x"]
    assert plain_words(["Été… là_bas", "a\x1eb"]) == ["ete la bas", "a b"]
    assert plain_words([]) == []


def test_a_matcher_serves_other_threads_and_leaves_nothing_to_the_next():
    matcher = WordMatcher(["a dog", "a cat"])
    with ThreadPoolExecutor(1) as other:
        assert other.submit(matcher.matches, ["dog"]).result().tolist() == [[True], [False]]
    del matcher
    assert not WordMatcher(["a horse"]).matches(["dog", "cat"]).any()
