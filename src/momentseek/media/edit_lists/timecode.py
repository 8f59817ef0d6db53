"""Frames, seconds and timecode, exactly.

A timecode counts frames in whole numbers per second: the nominal rate. At 29.97 frames per second non-drop timecode
therefore falls behind the clock by 3.6 s an hour. Drop-frame timecode skips the *numbers* 0 and 1 at the start of every
minute but each tenth (0 to 3 at 59.94), and no frame is lost (SMPTE ST 12-1).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from momentseek.errors import MomentseekError

_CODE = re.compile(r"(\d{2}):(\d{2}):(\d{2})([:;.,])(\d{2,3})")


def nominal(rate: Fraction) -> int:
    """Frame numbers per second of timecode.

    >>> nominal(Fraction(24000, 1001)), nominal(Fraction(25))
    (24, 25)
    """
    return max(1, round(rate))


def can_drop(rate: Fraction) -> bool:
    """Whether drop-frame timecode exists at this rate."""
    return rate in (Fraction(30000, 1001), Fraction(60000, 1001))


def frame_at(seconds: float, rate: Fraction) -> int:
    """The frame boundary nearest to a time, as a frame number; halfway, the later one.

    >>> frame_at(10.01, Fraction(30000, 1001)), frame_at(0.5, Fraction(25)), frame_at(1.5, Fraction(25))
    (300, 13, 38)
    """
    return math.floor(Fraction(seconds) * rate + Fraction(1, 2))


def timecode(frame: int, rate: Fraction, drop: bool = False) -> str:
    """The timecode of a frame; drop-frame timecode is told by its semicolon.

    >>> ntsc = Fraction(30000, 1001)
    >>> timecode(1800, ntsc), timecode(1800, ntsc, drop=True), timecode(17982, ntsc, drop=True)
    ('00:01:00:00', '00:01:00;02', '00:10:00;00')
    """
    per_second = nominal(rate)
    number = frame + (_dropped_before(frame, rate) if drop else 0)
    seconds, frames = divmod(number, per_second)
    if not 0 <= seconds < 24 * 3600:
        raise MomentseekError("timecode ends at 24 hours; export fewer or shorter moments, or as FCPXML")
    width = 2 if per_second <= 100 else 3
    mark = ";" if drop else ":"
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{mark}{frames:0{width}d}"


def frame_of(code: str, rate: Fraction) -> int:
    """The frame of a timecode; a semicolon or full stop before the frames means drop-frame.

    >>> frame_of("00:10:00;00", Fraction(30000, 1001)), frame_of("00:00:01:05", Fraction(25))
    (17982, 30)
    """
    match = _CODE.fullmatch(code.strip())
    if match is None:
        raise MomentseekError(f"{code!r} is no timecode; it looks like 01:00:00:00")
    hours, minutes, seconds, frames = (int(match[group]) for group in (1, 2, 3, 5))
    per_second = nominal(rate)
    if minutes > 59 or seconds > 59 or frames >= per_second:
        raise MomentseekError(f"{code!r} is no timecode at {per_second} frames per second; check the rate")
    number = ((hours * 60 + minutes) * 60 + seconds) * per_second + frames
    if match[4] in ":,":
        return number
    per_minute = _per_minute(rate)
    if minutes % 10 and seconds == 0 and frames < per_minute:
        raise MomentseekError(f"{code!r} is skipped by drop-frame timecode; check the list")
    total = hours * 60 + minutes
    return number - per_minute * (total - total // 10)


def _per_minute(rate: Fraction) -> int:
    if not can_drop(rate):
        raise MomentseekError("drop-frame timecode exists at 29.97 and 59.94 frames per second only")
    return nominal(rate) // 15


def _dropped_before(frame: int, rate: Fraction) -> int:
    """Numbers skipped up to a frame: per ten minutes nine times, within them once a minute after the first."""
    skip = _per_minute(rate)
    in_minute = nominal(rate) * 60 - skip
    tens, rest = divmod(frame, in_minute * 10 + skip)
    return skip * (9 * tens + (max(0, rest - skip) // in_minute))
