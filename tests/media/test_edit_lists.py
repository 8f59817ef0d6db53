"""Edit lists give the same frames when read back, by the tests' own reader and by OpenTimelineIO."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from edit_list_reader import read_edl, read_fcpxml
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.media.edit_lists import (
    EDITING_RATES,
    Excerpt,
    can_drop,
    editing_rate,
    reel_names,
    write_edl,
    write_fcpxml,
)

NTSC = Fraction(30000, 1001)
ODD = Path("/films/a b\n🎬 100%&<x>.mp4")


def excerpt(
    start: float,
    end: float,
    rate: Fraction = Fraction(25),
    path: Path = Path("/films/a.mp4"),
    audio: bool = True,
) -> Excerpt:
    return Excerpt(path, path.name, start, end, rate, "a dog", 600.0, 1920, 1080, audio)


spans = st.tuples(st.floats(0, 590), st.floats(0.001, 60)).map(lambda pair: (pair[0], pair[0] + pair[1]))
source_rates = st.sampled_from([*EDITING_RATES, Fraction(12), Fraction(15), Fraction(10), Fraction(48), Fraction(5)])


@given(st.lists(spans, min_size=1, max_size=6), source_rates, st.booleans())
def test_edl_round_trip(times: list[tuple[float, float]], rate: Fraction, drop: bool) -> None:
    excerpts = [excerpt(start, end, rate) for start, end in times]
    drop = drop and can_drop(editing_rate(rate))
    written = write_edl(excerpts, "q", drop=drop)
    found = read_edl(written.text)
    assert written.notes == ()
    assert found.rate == editing_rate(rate)
    assert [(edit.start, edit.end) for edit in found.edits] == [e.frames(found.rate) for e in excerpts]
    records = [edit.record for edit in found.edits]
    lengths = [edit.end - edit.start for edit in found.edits]
    assert [b - a for a, b in pairwise(records)] == lengths[:-1]


@given(st.lists(spans, min_size=1, max_size=6), source_rates)
def test_fcpxml_round_trip(times: list[tuple[float, float]], rate: Fraction) -> None:
    excerpts = [excerpt(start, end, rate) for start, end in times]
    written = write_fcpxml(excerpts, "q")
    found = read_fcpxml(written.text)
    assert found.rate == editing_rate(rate)
    fits = (found.rate / rate).denominator == 1
    for edit, wanted in zip(found.edits, excerpts, strict=True):
        assert edit.rate == rate
        first, last = wanted.frames()
        assert edit.start == first
        assert edit.end == last if fits else last <= edit.end <= last + 1
    assert bool(written.notes) <= (not fits)


@pytest.mark.parametrize(
    ("average", "usual"),
    [
        ("2437/100", Fraction(24)),
        ("17981/750", EDITING_RATES[0]),
        ("26841/1000", Fraction(25)),
        ("359281/12000", EDITING_RATES[3]),
        ("41/1", Fraction(50)),
        ("1000/17", Fraction(60000, 1001)),
        ("7/3", EDITING_RATES[0]),
    ],
)
def test_fcpxml_uses_the_nearest_standard_rate_for_variable_rates(average: str, usual: Fraction) -> None:
    odd = excerpt(10.0, 20.0, Fraction(average))
    written = write_fcpxml([odd], "q")
    found = read_fcpxml(written.text)
    assert (found.rate, found.edits[0].rate) == (usual, usual)
    assert (found.edits[0].start, found.edits[0].end) == odd.frames(usual)
    assert written.notes == ()


@given(st.lists(st.tuples(spans, source_rates), min_size=1, max_size=6))
def test_mixed_rates_are_accurate_to_one_timeline_frame(
    rows: list[tuple[tuple[float, float], Fraction]],
) -> None:
    excerpts = [excerpt(start, end, rate, Path(f"/films/{rate.numerator}.mp4")) for (start, end), rate in rows]
    by_edl = read_edl(write_edl(excerpts, "q").text)
    by_xml = read_fcpxml(write_fcpxml(excerpts, "q").text)
    assert by_edl.rate == by_xml.rate
    for cut, clip, wanted in zip(by_edl.edits, by_xml.edits, excerpts, strict=True):
        first, last = wanted.frames()
        assert clip.start == first
        assert 0 <= (clip.end - last) / wanted.rate < 1 / by_xml.rate + 1 / (2 * wanted.rate)
        assert abs(cut.start / cut.rate - Fraction(min(wanted.start, 600))) <= 1 / cut.rate


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_names_and_queries_survive_or_become_blank(title: str, name: str, file: str) -> None:
    path = Path("/films") / (file.replace("\0", "").replace("/", "").strip(".") or "x")
    try:
        path.name.encode()
    except UnicodeEncodeError:
        return
    one = Excerpt(path, name, 1.0, 2.0, Fraction(25), title, 10.0)
    cut, clip = read_edl(write_edl([one], title).text).edits[0], read_fcpxml(write_fcpxml([one], title).text).edits[0]
    assert (cut.path, cut.start, cut.end) == (path, 25, 50)
    assert (clip.path, clip.start, clip.end) == (path, 25, 50)


def test_edl_text() -> None:
    written = write_edl([excerpt(1.0, 2.0), excerpt(3.0, 3.5, path=ODD, audio=False)], 'a "dog"')
    assert written.text.splitlines() == [
        'TITLE: a "dog"',
        "FCM: NON-DROP FRAME",
        "",
        "001  A        AA/V  C        00:00:01:00 00:00:02:00 01:00:00:00 01:00:01:00",
        "* FROM CLIP NAME: a.mp4",
        "* SOURCE FILE: /films/a.mp4",
        "* FRAME RATE: 25 (25)",
        "* COMMENT: a dog",
        "",
        "002  AB100X   V     C        00:00:03:00 00:00:03:13 01:00:01:00 01:00:01:13",
        "* FROM CLIP NAME: a b 🎬 100%&<x>.mp4",
        "* SOURCE FILE: file:///films/a%20b%0A%F0%9F%8E%AC%20100%25%26%3Cx%3E.mp4",
        "* COMMENT: a dog",
    ]


def test_given_rate_rounds_other_sources() -> None:
    written = write_edl([excerpt(1.0, 2.0), excerpt(1.0, 2.0, Fraction(24))], "q", rate=Fraction(24))
    assert "1 of 2 excerpts" in written.notes[0]
    assert "* SOURCE FRAME RATE: 25 (25)" in written.text
    with pytest.raises(MomentseekError, match="drop-frame"):
        write_edl([excerpt(1.0, 2.0)], "q", drop=True)


def test_reel_names_are_short_and_unique() -> None:
    paths = [Path(f"/{i}/holiday in spain.mp4") for i in range(120)] + [Path("/🎬.mp4")]
    reels = reel_names([excerpt(0, 1, path=path) for path in paths])
    assert len(set(reels.values())) == 121
    assert all(1 <= len(reel) <= 8 and reel.isalnum() for reel in reels.values())


def test_empty_lists_are_valid() -> None:
    assert read_edl(write_edl([], "q").text).edits == ()
    assert read_fcpxml(write_fcpxml([], "q").text).edits == ()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("rate", "drop"), [(rate, drop) for rate in EDITING_RATES for drop in (False, True) if can_drop(rate) or not drop]
)
def test_opentimelineio_reads_the_same_frames_from_an_edl(rate: Fraction, drop: bool) -> None:
    otio = pytest.importorskip("opentimelineio")
    pytest.importorskip("otio_cmx3600_adapter")
    excerpts = [excerpt(0.0, 1.0, rate), excerpt(59.5, 75.25, rate), excerpt(599.0, 600.0, rate, Path("/films/b.mp4"))]
    text = write_edl(excerpts, "q", drop=drop).text
    timeline = otio.adapters.read_from_string(text, "cmx_3600", rate=float(rate))
    clips = list(timeline.tracks[0].find_clips())
    assert [(round(c.source_range.start_time.value), round(c.source_range.duration.value)) for c in clips] == [
        (first, last - first) for first, last in (e.frames(rate) for e in excerpts)
    ]
    assert [clip.name for clip in clips] == ["a.mp4", "a.mp4", "b.mp4"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rate", [rate for rate in EDITING_RATES if rate.denominator == 1])
def test_opentimelineio_reads_the_same_frames_from_an_fcpxml(rate: Fraction) -> None:
    """Whole rates only: its adapter takes 29.97 frames per second for 29."""
    otio = pytest.importorskip("opentimelineio")
    pytest.importorskip("otio_fcpx_xml_adapter")
    excerpts = [excerpt(0.0, 1.0, rate), excerpt(59.5, 75.25, rate), excerpt(599.0, 600.0, rate, Path("/films/b.mp4"))]
    found = otio.adapters.read_from_string(write_fcpxml(excerpts, "q").text, "fcpx_xml")
    clips = list(found.find_clips())
    frames = [
        (round(c.source_range.start_time.to_seconds() * rate), round(c.source_range.duration.to_seconds() * rate))
        for c in clips
    ]
    assert frames == [(first, last - first) for first, last in (e.frames(rate) for e in excerpts)]
