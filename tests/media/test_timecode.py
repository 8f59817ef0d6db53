"""Timecode, compared with its definition and with known values."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.errors import MomentseekError
from momentseek.media.edit_lists import (
    EDITING_RATES,
    can_drop,
    commonest_rate,
    editing_rate,
    frame_at,
    frame_of,
    nominal,
    timecode,
)

NTSC = Fraction(30000, 1001)
DOUBLE = Fraction(60000, 1001)


@pytest.mark.parametrize(
    ("frame", "rate", "code"),
    [
        (0, NTSC, "00:00:00;00"),
        (1799, NTSC, "00:00:59;29"),
        (1800, NTSC, "00:01:00;02"),
        (17981, NTSC, "00:09:59;29"),
        (17982, NTSC, "00:10:00;00"),
        (107892, NTSC, "01:00:00;00"),
        (3599, DOUBLE, "00:00:59;59"),
        (3600, DOUBLE, "00:01:00;04"),
        (215784, DOUBLE, "01:00:00;00"),
    ],
)
def test_drop_frame_timecode(frame: int, rate: Fraction, code: str) -> None:
    assert timecode(frame, rate, drop=True) == code
    assert frame_of(code, rate) == frame


def numbered(rate: Fraction, minutes: int) -> list[str]:
    """All drop-frame timecodes in order, by skipping numbers one at a time."""
    base = nominal(rate)
    skip = base // 15
    return [
        f"00:{minute:02d}:{second:02d};{frame:02d}"
        for minute in range(minutes)
        for second in range(60)
        for frame in range(base)
        if not (minute % 10 and second == 0 and frame < skip)
    ]


@pytest.mark.parametrize("rate", [NTSC, DOUBLE])
def test_drop_frame_timecode_by_counting(rate: Fraction) -> None:
    codes = numbered(rate, 22)
    assert [timecode(frame, rate, drop=True) for frame in range(len(codes))] == codes


@given(st.sampled_from(EDITING_RATES), st.integers(0, 24 * 3600 * 23), st.booleans())
def test_timecode_round_trip(rate: Fraction, frame: int, drop: bool) -> None:
    assert frame_of(timecode(frame, rate, drop and can_drop(rate)), rate) == frame


@given(st.sampled_from(EDITING_RATES), st.integers(0, 10**7))
def test_seconds_round_trip(rate: Fraction, frame: int) -> None:
    assert frame_at(float(frame / rate), rate) == frame


@given(st.integers(0, 107892 * 23))
def test_drop_frame_timecode_follows_real_time(frame: int) -> None:
    hours, minutes, rest = timecode(frame, NTSC, drop=True).split(":")
    seconds, frames = rest.split(";")
    shown = int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(frames) / 30
    assert abs(shown - float(frame / NTSC)) < 0.15  # two frames within a minute, and 3.6 ms more with each hour


@pytest.mark.parametrize("code", ["00:01:00;00", "00:00:61:00", "00:00:00:30", "noon", "1:2:3:4", ""])
def test_rejects_invalid_timecode(code: str) -> None:
    with pytest.raises(MomentseekError):
        frame_of(code, NTSC)


def test_timecode_ends_after_a_day() -> None:
    with pytest.raises(MomentseekError, match="24 hours"):
        timecode(25 * 24 * 3600, Fraction(25))
    with pytest.raises(MomentseekError, match="drop-frame"):
        timecode(0, Fraction(25), drop=True)


@given(st.fractions(Fraction(1, 10), 300))
def test_every_rate_maps_to_an_editing_rate(rate: Fraction) -> None:
    assert editing_rate(rate) in EDITING_RATES


def test_rates() -> None:
    assert all(editing_rate(rate) == rate for rate in EDITING_RATES)
    assert commonest_rate([Fraction(25), Fraction(24), Fraction(24)]) == 24
    assert commonest_rate([Fraction(25), Fraction(60)]) == 60
    with pytest.raises(MomentseekError, match="positive"):
        editing_rate(Fraction(0))
