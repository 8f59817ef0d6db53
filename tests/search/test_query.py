from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from momentseek.search.query import (
    MAX_CHARACTERS,
    Part,
    Query,
    QueryError,
    SyntaxToken,
    date_interval,
    escape_word,
    read_tokens,
    time_period,
)

ALPHABET = st.sampled_from(
    [*'ab-:"\\ 2.0“”', "said:", "in:", "after:", "2024-05", "name:", "7d", "*", "é", "\0", "\ud800"]
)
LINES = st.lists(ALPHABET, max_size=16).map("".join) | st.text(max_size=60)


def refusal(text: str) -> QueryError | None:
    try:
        Query.parse(text)
    except QueryError as e:
        return e
    return None


@given(LINES)
@example('-"-- x"')
@example("-1:a")
@example('2:"" x')
def test_query_is_parsed_or_refused_and_its_canonical_form_is_equal(line):
    if refusal(line) is None:
        query = Query.parse(line)
        assert Query.parse(str(query)) == query
        assert str(Query.parse(str(query))) == str(query)


def test_an_escaped_space_is_no_word():
    assert Query.parse("a\\ b") == Query.parse("a b")
    assert not Query.parse("\\ ")


@given(LINES)
def test_an_error_points_into_the_line(line):
    caught = refusal(line)
    if caught is not None:
        assert 0 <= caught.at <= len(line)
        assert f"at character {caught.at + 1}" in str(caught)
        assert "\n" not in str(caught)


@given(st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=12))
def test_an_escaped_word_means_itself(word):
    if not any(c.isspace() for c in word):
        (token,) = read_tokens(escape_word(word))
        assert token == SyntaxToken(0, word)


@pytest.mark.parametrize(
    "text",
    [
        "at 5:30",
        "16:9 picture",
        "https://example.org/a",
        "John 3:16",
        "2024:x",
        "well-known",
        "-5 degrees",
        "a - b",
        "--",
    ],
)
def test_ordinary_writing_is_text(text):
    assert Query.parse(text) == Query(text=text)


def test_every_part_of_the_language():
    query = Query.parse(
        '2:dog 0.5:"city park" runs "good boy" said:fetch said:"two words" -leash -"bad dog" -said:no -0.5:cat '
        'name:part2 in:holiday* IN:"my films/*" -in:draft after:7d before:2024-05'
    )
    assert query == Query(
        text="runs",
        parts=(Part("dog", 2.0), Part("city park", 0.5)),
        phrases=("good boy",),
        said=("fetch", "two words"),
        avoid=(Part("leash"), Part("bad dog"), Part("cat", 0.5)),
        unsaid=("bad dog", "no"),
        names=("part2",),
        within=("holiday*", "my films/*"),
        outside=("draft",),
        after="7d",
        before="2024-05",
    )
    assert query.speech_text == "fetch two words"
    assert query.name_text == "part2"
    assert [p.text for p in query.picture_parts] == ["runs", "dog", "city park"]


def test_curly_quotes_and_inches():
    assert Query.parse("“good boy”").phrases == ("good boy",)
    assert Query.parse('a 5" nail').text == 'a 5" nail'


@pytest.mark.parametrize(
    ("text", "at", "why"),
    [
        ('dog "runs', 4, "without its partner"),
        ('dog ""', 4, "nothing between"),
        ("in: x", 0, "nothing after it"),
        ("dog before:noon", 4, "2024-05-31"),
        ("after:2024-13", 0, "without a date"),
        ("after:2024 after:2023", 11, "a second after:"),
        ("-after:2024", 0, "write before: instead"),
        ("0:dog", 0, "a weight of 0"),
        ('dog "!!"', 4, "no word"),
        ("-name:x", 0, "-in:GLOB"),
        ("x" * (MAX_CHARACTERS + 1), MAX_CHARACTERS, "fewer words"),
        (" ".join(f"-w{i}" for i in range(40)), 150, "ask for less"),
    ],
)
def test_what_is_refused(text, at, why):
    with pytest.raises(QueryError, match=why) as caught:
        Query.parse(text)
    assert caught.value.at == at


def test_filters_and_things_to_avoid_are_nothing_to_look_for():
    assert not Query.parse("-dog in:x* after:2020")
    assert not Query.parse("  ")
    assert Query.parse("name:x")


def test_dates_are_local_days_months_and_years():
    assert date_interval("2024-12") == (datetime(2024, 12, 1).timestamp(), datetime(2025, 1, 1).timestamp())
    assert date_interval("2023")[1] == date_interval("2024")[0] == date_interval("2024-01-01")[0]
    assert time_period("2023-12-31", "2024-05", 0.0) == (date_interval("2024-01-01")[0], date_interval("2024-05-01")[0])
    assert time_period("2W", "12h", 1e9) == (1e9 - 14 * 86400, 1e9 - 43200)
    for wrong in ("2024-02-30", "1900", "24-05-01", "d", "x"):
        with pytest.raises(ValueError, match=r"\w"):
            date_interval(wrong)


@pytest.mark.parametrize("text", ["-ca\\\x1c", "2:dog\\ ", "said:\\ x", "-a\\ b", "\\ "])
def test_an_escaped_space_at_the_edge_of_a_word_is_no_part_of_it(text: str) -> None:
    query = Query.parse(text)
    assert Query.parse(str(query)) == query


def test_a_sign_before_a_mere_space_is_refused() -> None:
    with pytest.raises(QueryError, match="write a word after it"):
        Query.parse("-\\ ")
