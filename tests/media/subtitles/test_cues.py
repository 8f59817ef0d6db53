"""Tidying and joining cues: no line twice, none lost, correct times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from momentseek.media.subtitles.cues import MAX_JOINED_CHARACTERS, MAX_JOINED_SECONDS, Cue, join_sentences, tidy
from momentseek.media.subtitles.read import parse_subtitles

YOUTUBE = """WEBVTT
Kind: captions
Language: en

00:00:00.160 --> 00:00:02.389 align:start position:0%
 
hello<00:00:00.480><c> everyone</c><00:00:00.880><c> today</c>

00:00:02.389 --> 00:00:02.399 align:start position:0%
hello everyone today
 

00:00:02.399 --> 00:00:04.550 align:start position:0%
hello everyone today
we<00:00:02.639><c> bake</c><00:00:02.800><c> bread</c>

00:00:04.550 --> 00:00:04.560 align:start position:0%
we bake bread
 

00:00:04.560 --> 00:00:07.000 align:start position:0%
we bake bread
without<00:00:05.000><c> yeast</c>
"""  # noqa: W293


def test_scrolling_captions_keep_each_line_once() -> None:
    cues = parse_subtitles(YOUTUBE.encode(), "x.vtt")
    assert [(cue.start, cue.end, cue.text) for cue in cues] == [
        (0.16, 2.399, "hello everyone today"),
        (2.399, 4.56, "we bake bread"),
        (4.56, 7.0, "without yeast"),
    ]
    assert [cue.text for cue in join_sentences(cues)] == ["hello everyone today we bake bread without yeast"]


def test_overlapping_scrolling_captions_end_where_the_next_line_begins() -> None:
    cues = tidy([Cue(0, 4, "one"), Cue(2, 6, "one\ntwo"), Cue(4, 8, "two\nthree")])
    assert cues == [Cue(0, 2, "one"), Cue(2, 4, "two"), Cue(4, 8, "three")]


def test_a_line_that_grows_word_by_word_is_one_cue() -> None:
    cues = tidy([Cue(0, 1, "A\nWE"), Cue(1, 2, "A\nWE WENT"), Cue(2, 3, "A\nWE WENT OUT"), Cue(3, 5, "WE WENT OUT\nB")])
    assert cues == [Cue(0, 3, "A WE WENT OUT"), Cue(3, 5, "B")]


def test_repeated_words_later_are_kept() -> None:
    assert tidy([Cue(0, 1, "No."), Cue(5, 6, "No.")]) == [Cue(0, 1, "No."), Cue(5, 6, "No.")]


def test_layers_of_one_text_are_one_cue() -> None:
    assert tidy([Cue(0, 2, "Sign"), Cue(0, 3, "talk"), Cue(0, 2, "Sign")]) == [Cue(0, 2, "Sign"), Cue(0, 3, "talk")]


def test_times_out_of_order_reversed_or_before_the_video() -> None:
    cues = tidy([Cue(9, 10, "c"), Cue(5, 3, "b" * 30), Cue(-3, -1, "lost"), Cue(-1, 1, "a"), Cue(6, 6, "x")])
    assert cues == [Cue(0.0, 1, "a"), Cue(5, 6, "b" * 30), Cue(6, 7.0, "x"), Cue(9, 10, "c")]


def test_speakers_and_sounds_stay_apart_when_sentences_are_joined() -> None:
    cues = [Cue(0, 1, "and then he"), Cue(1, 2, "[door slams]"), Cue(2, 3, "- Who is"), Cue(3, 4, "there?")]
    assert [cue.text for cue in join_sentences(cues)] == ["and then he", "[door slams]", "- Who is there?"]


def test_sentence_is_not_joined_across_a_pause() -> None:
    assert len(join_sentences([Cue(0, 1, "and then"), Cue(3, 4, "nothing")])) == 2


def test_ellipsis_continues_a_sentence() -> None:
    assert [cue.text for cue in join_sentences([Cue(0, 1, "I thought..."), Cue(1, 2, "...it was you.")])] == [
        "I thought... ...it was you."
    ]


cue_lists = st.lists(
    st.builds(
        Cue,
        st.floats(-10, 200),
        st.floats(-10, 200),
        st.text(alphabet="ab .\n<i>&;{}\\-", max_size=30),
    ),
    max_size=20,
)


@given(cue_lists)
def test_tidied_cues_are_sorted_with_positive_length(cues: list[Cue]) -> None:
    found = tidy(cues)
    assert all(0 <= cue.start < cue.end and cue.text.strip() for cue in found)
    assert [cue.start for cue in found] == sorted(cue.start for cue in found)


@given(cue_lists)
def test_joining_keeps_every_word_within_limits(cues: list[Cue]) -> None:
    found = tidy(cues)
    whole = join_sentences(found)
    assert " ".join(cue.text for cue in whole) == " ".join(cue.text for cue in found)
    alone = {(cue.start, cue.text) for cue in found}
    for cue in whole:
        within = cue.end - cue.start <= MAX_JOINED_SECONDS and len(cue.text) <= MAX_JOINED_CHARACTERS
        assert within or (cue.start, cue.text) in alone
