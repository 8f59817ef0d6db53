"""Subtitle formats as real programs write them, and the round trip through our own writer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.media.subtitles import ass, sbv, srt, vtt
from momentseek.media.subtitles.cues import Cue, seconds, stamp, tidy
from momentseek.media.subtitles.read import parse_subtitles


@pytest.mark.parametrize(
    ("line", "times"),
    [
        ("00:00:01,000 --> 00:00:02,500", (1.0, 2.5)),
        ("00:00:01.000 --> 00:00:02.500", (1.0, 2.5)),
        ("0:0:1,5 --> 0:0:2,05", (1.5, 2.05)),
        ("00:01.000 --> 00:02.500", (1.0, 2.5)),
        ("00:00:01:000 --> 00:00:02:500", (1.0, 2.5)),
        ("  00:00:01,000-->00:00:02,500 ", (1.0, 2.5)),
        ("00: 00: 01, 000 -> 00: 00: 02, 500", (1.0, 2.5)),
        ("00:00:01,000 - -> 00:00:02,500", (1.0, 2.5)),
        ("-00:00:01,000 --> 00:00:02,500", (-1.0, 2.5)),
        ("123:00:00,000 --> 123:00:01,000", (442800.0, 442801.0)),
        ("00:00:01,000 --> 00:00:02,500 X1:1 X2:2", (1.0, 2.5)),
        ("00:00:01 --> 00:00:02", (1.0, 2.0)),
        ("one --> two", None),
        ("00:00:01,000", None),
        ("<!-- 12:00 -->", None),
    ],
)
def test_lines_of_times(line: str, times: tuple[float, float] | None) -> None:
    assert srt.times(line) == times


def test_srt_keeps_numbers_in_text_and_drops_cue_numbers() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\n42\n\n2\n00:00:03,000 --> 00:00:04,000\nor\n\n7\n"
    assert [cue.text for cue in srt.parse(text)] == ["42", "or\n\n7"]


def test_srt_without_blank_lines_or_numbers() -> None:
    text = "00:00:01,000 --> 00:00:02,000\none\n00:00:03,000 --> 00:00:04,000\ntwo"
    assert [cue.text for cue in srt.parse(text)] == ["one", "two"]


def test_srt_with_numbers_but_no_blank_lines() -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\n17\n2\n00:00:03,000 --> 00:00:04,000\nI was\n19\n00:00:05,000 --> 0:06,0\nx"
    )
    assert [cue.text for cue in srt.parse(text)] == ["17", "I was\n19", "x"]


def test_vtt_skips_headers_notes_and_styles() -> None:
    text = (
        "WEBVTT - a title\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nNOTE\n1\n2\n\n"
        "1\n00:01.000 --> 00:02.000 position:0%\none\n \ntwo\n\nNOTE three\n\n00:03.000 --> 00:04.000\nfour\n"
    )
    assert [cue.text for cue in vtt.parse(text)] == ["one\n \ntwo", "four"]


def test_ass_reads_columns_in_any_order_and_text_with_commas() -> None:
    text = (
        "[Script Info]\nTitle: x\n[V4+ Styles]\nFormat: Name, Fontname\nStyle: Default,Arial\n[Events]\n"
        "Format: Start, End, Layer, Text\n"
        "Comment: 0:00:00.00,0:00:01.00,0,not said\n"
        "Dialogue: 0:00:01.00,0:00:02.50,0,{\\pos(10,20)}Well, {\\i1}yes{\\i0}\\Nno\n"
        "Dialogue: broken\n"
    )
    assert list(ass.parse(text)) == [Cue(1.0, 2.5, "Well, yes\nno")]


def test_sbv_reads_cues_between_blank_lines() -> None:
    cues = list(sbv.parse("0:00:01.000,0:00:02.500\none\ntwo\n\n0:00:03.000,0:00:04.000\nthree"))
    assert [(cue.start, cue.end, cue.text) for cue in cues] == [(1.0, 2.5, "one\ntwo"), (3.0, 4.0, "three")]


@pytest.mark.parametrize("name", ["x.srt", "x.vtt", "x.ass", "x.sbv", "x.txt"])
def test_format_is_detected_by_content(name: str) -> None:
    for text in (
        "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n",
        "1\r\n00:00:01,000 --> 00:00:02,000\r\nHello\r\n",
        "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,Hello\n",
        "0:00:01.000,0:00:02.000\nHello\n",
    ):
        assert parse_subtitles(text.encode(), name) == [Cue(1.0, 2.0, "Hello")]


@given(st.integers(min_value=0, max_value=400_000_000))
def test_time_round_trip(milliseconds: int) -> None:
    assert seconds(stamp(milliseconds / 1000)) == milliseconds / 1000


words = st.text(st.characters(blacklist_categories=["C", "Z"], blacklist_characters="<>&{}♪"), min_size=1).filter(
    lambda word: any(map(str.isalnum, word))
)
texts = st.lists(words, min_size=1, max_size=5).map(" ".join)


@given(st.lists(st.tuples(st.integers(0, 10**8), st.integers(1, 10**5), texts), min_size=1, max_size=8))
def test_srt_round_trip(rows: list[tuple[int, int, str]]) -> None:
    cues = tidy(Cue(start / 1000, (start + length) / 1000, text) for start, length, text in rows)
    assert list(srt.parse(srt.srt_text(cues))) == cues
    apart = [Cue(10.0 * i, 10.0 * i + 5, cue.text) for i, cue in enumerate(cues)]  # tidying again has nothing to do
    assert parse_subtitles(srt.srt_text(apart).encode(), "x.srt") == apart
