"""Questions are read as what they ask for, and ordinary queries are left alone."""

from __future__ import annotations

import pytest

from momentseek.search.query import Query
from momentseek.search.questions import read_question


@pytest.mark.parametrize(
    ("asked", "topic"),
    [
        ("what did he say about the door?", "the door"),
        ("What does the old man say about the war", "the war"),
        ("what is said about money?", "money"),
        ("when does she mention the budget?", "the budget"),
        ("who says hello", "hello"),
        ("where do they talk about the harvest?", "the harvest"),
        ("did anybody mention a key?", "a key"),
        ("does she say anything about Paris?", "Paris"),
        ("how often does he say sorry?", "sorry"),
        ("was the strike ever mentioned?", "the strike"),
        ("who tells us about the sea?", "the sea"),
        ("what do they explain about taxes?", "taxes"),
    ],
)
def test_questions_about_what_is_said(asked: str, topic: str) -> None:
    read = read_question(Query.parse(asked))
    assert (read.query.said, read.query.text, read.query.picture_parts) == ((topic,), "", ())
    assert read.note == f"read as a question about what is said: {topic}"


@pytest.mark.parametrize(
    ("asked", "text", "note"),
    [
        ("when does the dog jump?", "the dog jump", "read as a question about"),
        ("where is the red car", "the red car", "read as a question about"),
        ("When did the explosion happen?", "the explosion", "read as a question about"),
        ("in which video is the bridge?", "the bridge", "read as a question about"),
        ("how many times does she open the door?", "she open the door", "asks how often"),
        ("how many dogs are there?", "dogs", "asks how often"),
        ("why does he run?", "he run", "asks for a reason"),
        ("is there a cat on the chair?", "cat on the chair", "read as a question about"),
        ("show me the moment when the rocket starts", "the rocket starts", "read as a question about"),
        ("who opens the door?", "opens the door", "read as a question about"),
        ("what does the sign say?", "the sign", "read as a question about"),
        ("when does the man talk on the phone?", "the man talk on the phone", "read as a question about"),
        ("who is talking to the woman?", "talking to the woman", "read as a question about"),
    ],
)
def test_other_questions_lose_the_words_of_asking(asked: str, text: str, note: str) -> None:
    read = read_question(Query.parse(f"{asked} in:film* -night after:2020"))
    assert read.query.text == text
    assert read.note.startswith(note)
    assert (read.query.within, read.query.avoid[0].text, read.query.after) == (("film*",), "night", "2020")


@pytest.mark.parametrize(
    "text",
    ["a man who says hello", "when the dog runs", "a person explains a map", "what", "who", "how", "where eagles dare",
     'what did he say about "the door"', "said:door what", "island", "whatever happens", "she is talking about art"],
)  # fmt: skip
def test_what_is_no_question_stays_as_it_is(text: str) -> None:
    query = Query.parse(text)
    assert read_question(query) == (query, "")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a beach without people", "a beach -people"),
        ("man without a shirt", "man -shirt"),
        ("a street without any cars at night", "a street at night -cars"),
        ("dog without leash -cat", "dog -cat -leash"),
    ],
)
def test_what_is_missing_is_avoided(text: str, read: str) -> None:
    found = read_question(Query.parse(text))
    assert (str(found.query), found.note) == (read, f"read as: {read}")


@pytest.mark.parametrize("text", ["without", "without people", '"without people"', "going without"])
def test_without_alone_is_a_word(text: str) -> None:
    assert read_question(Query.parse(text)).note == ""
