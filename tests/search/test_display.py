from fractions import Fraction
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.reports import width
from momentseek.media.subtitles.cues import Cue
from momentseek.search.display import BOLD_OFF, BOLD_ON, card, clock, remarks, said_lines, shorten, sparkline, table
from momentseek.search.hit import Hit, StreamRank
from momentseek.search.query import Query


def hit(**more):
    values = {
        "rank": 1, "video_id": 1, "path": Path(__file__), "name": "a.mp4", "start": 1.0, "end": 4.0, "score": 0.03,
        "level": "strong", "peak": 2.0, "duration": 60.0, "rate": Fraction(25),
        "streams": {"vision": StreamRank(1, 0.31)},
    }  # fmt: skip
    return Hit(**(values | more))


def test_found_words_are_bold_and_the_columns_stay_aligned():
    hits = [hit(said=(Cue(1, 2, "no"), Cue(2, 3, "two dogs here"))), hit(rank=2, name="b" * 60)]
    query = Query.parse("a dog")
    plain, bold = (table(hits, query, bold=b).splitlines() for b in (False, True))
    assert "two dogs here" in plain[1]
    assert "two \x1b[1mdogs\x1b[22m here" in bold[1]
    assert bold[1].replace("\x1b[1m", "").replace("\x1b[22m", "") == plain[1]
    assert plain[1].index("seen #1") == plain[2].index("seen #1") == plain[0].index("why")
    assert "…bbb" in plain[2]


def test_a_card_has_the_words_and_the_copies():
    text = card(hit(said=(Cue(1, 2, "a dog"),), also=("copy.mp4",), curve=(0.1, 0.2)), Query.parse("dog"), explain=True)
    assert text.splitlines()[:3] == ["1  strong  0:01.0–0:04.0  a.mp4  seen #1", "   “a dog”", "   also: copy.mp4"]
    assert "vision rank 1, score 0.310; fused 0.03000" in text


def test_remarks():
    assert remarks(0, "") == ""
    assert remarks(1, "") == "1 weaker result hidden; show it: --all"
    assert remarks(3, "nothing matches well") == "nothing matches well; 3 weaker results hidden; show them: --all"


@given(st.floats(0, 1e6))
def test_a_clock_reads_back(seconds):
    *hours, minutes, rest = clock(seconds).split(":")
    total = sum(int(h) * 3600 for h in hours) + int(minutes) * 60 + float(rest)
    assert abs(total - seconds) <= 0.0501
    assert float(rest) < 60


@given(st.text("ab 東é", max_size=40), st.text("xy", max_size=6), st.text("ab 東é", max_size=40), st.integers(4, 30))
def test_a_snippet_fits_and_keeps_a_found_word_in_sight(before, word, after, room):
    text = f"{before}{BOLD_ON}{word}{BOLD_OFF}{after}" if word else before + after
    short = shorten(text, room)
    plain = short.replace(BOLD_ON, "").replace(BOLD_OFF, "")
    assert width(plain) <= room
    assert short.count(BOLD_ON) == short.count(BOLD_OFF)
    if word and width(word) + 2 <= room:
        assert word in plain


def test_snippets_prefer_the_cue_with_the_words():
    said = (Cue(1, 2, "hello"), Cue(2, 3, "the running dog"), Cue(3, 4, "a dog"))
    assert said_lines([hit(said=said), hit()], Query.parse("dog runs"), 40) == [
        f"the {BOLD_ON}running{BOLD_OFF} {BOLD_ON}dog{BOLD_OFF}",
        "",
    ]


def test_a_short_moment_in_a_long_video_is_seen_in_its_curve():
    curve = [0.1] * 1000
    curve[500] = 0.9
    bars, marks = sparkline(hit(curve=tuple(curve), start=750.0, end=751.5, duration=1500.0)).split("\n")
    assert len(bars) == 60
    assert bars[30] == "█"
    assert marks == " " * 30 + "━"
    assert sparkline(hit()) == ""
    assert set(sparkline(hit(curve=(0.2, 0.2))).split("\n")[0]) == {"▁"}
