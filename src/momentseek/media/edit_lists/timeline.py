"""What an edit list is made of: excerpts, frame rates, frames, seconds and timecode, exactly.

A timecode counts frames in whole numbers per second: the nominal rate. At 29.97 frames per second non-drop timecode
therefore falls behind the clock by 3.6 s an hour. Drop-frame timecode skips the *numbers* 0 and 1 at the start of every
minute but each tenth (0 to 3 at 59.94), and no frame is lost (SMPTE ST 12-1).
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

from momentseek.core.errors import MomentseekError

_TIMECODE = re.compile(r"(\d{2}):(\d{2}):(\d{2})([:;.,])(\d{2,3})")


EDITING_RATES = (
    Fraction(24000, 1001),
    Fraction(24),
    Fraction(25),
    Fraction(30000, 1001),
    Fraction(30),
    Fraction(50),
    Fraction(60000, 1001),
    Fraction(60),
)
"""Frame rates of editing programs: 23.976, 24, 25, 29.97, 30, 50, 59.94 and 60 frames per second."""


def editing_rate(rate: Fraction) -> Fraction:
    """The rate at which to edit a source: its own, a multiple or whole part of it, or the nearest one.

    >>> [str(editing_rate(Fraction(rate))) for rate in ("25", "15", "240", "30000/1001", "11991/999", "1")]
    ['25', '30', '60', '30000/1001', '24000/1001', '24']
    """
    if rate <= 0:
        raise MomentseekError(f"a frame rate of {rate} is none; give a positive one")
    exact = [usual for usual in EDITING_RATES if _is_multiple(usual, rate)]
    return min(exact or EDITING_RATES, key=lambda usual: (abs(usual - rate), usual))


def source_rate(rate: Fraction) -> Fraction:
    """The rate whose frames a source is counted in: its own where an editing program has one to match it.

    An average, which a video of variable rate has, counts as the nearest usual rate.

    >>> [str(source_rate(Fraction(rate))) for rate in ("25", "15", "240", "30000/1001", "2437/100", "11991/999")]
    ['25', '15', '240', '30000/1001', '24', '24000/1001']
    """
    usual = editing_rate(rate)
    return rate if _is_multiple(usual, rate) else usual


def _is_multiple(usual: Fraction, rate: Fraction) -> bool:
    """Whether one of two rates is a whole multiple of the other."""
    return (usual / rate).denominator == 1 or (rate / usual).denominator == 1


def commonest_rate(rates: Iterable[Fraction]) -> Fraction:
    """The rate at which most sources are edited; of two equally common ones the faster, which loses less.

    >>> commonest_rate([Fraction(25), Fraction(50), Fraction(50)]), commonest_rate([])
    (Fraction(50, 1), Fraction(25, 1))
    """
    counts = Counter(map(editing_rate, rates))
    return max(counts, key=lambda rate: (counts[rate], rate)) if counts else Fraction(25)


def rate_text(rate: Fraction) -> str:
    """A frame rate as people write it.

    >>> rate_text(Fraction(30000, 1001)), rate_text(Fraction(25))
    ('29.97', '25')
    """
    return f"{float(rate):.3f}".rstrip("0").rstrip(".")


def nominal(rate: Fraction) -> int:
    """Frame numbers per second of timecode at a rate.

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
    """The timecode of a frame; drop-frame timecode has a semicolon.

    >>> ntsc = Fraction(30000, 1001)
    >>> timecode(1800, ntsc), timecode(1800, ntsc, drop=True), timecode(17982, ntsc, drop=True)
    ('00:01:00:00', '00:01:00;02', '00:10:00;00')
    """
    per_second = nominal(rate)
    number = frame + (_skipped_numbers(frame, rate) if drop else 0)
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
    match = _TIMECODE.fullmatch(code.strip())
    if match is None:
        raise MomentseekError(f"{code!r} is no timecode; it looks like 01:00:00:00")
    hours, minutes, seconds, frames = (int(match[group]) for group in (1, 2, 3, 5))
    per_second = nominal(rate)
    if minutes > 59 or seconds > 59 or frames >= per_second:
        raise MomentseekError(f"{code!r} is no timecode at {per_second} frames per second; check the rate")
    number = ((hours * 60 + minutes) * 60 + seconds) * per_second + frames
    if match[4] in ":,":
        return number
    skipped = _skipped_per_minute(rate)
    if minutes % 10 and seconds == 0 and frames < skipped:
        raise MomentseekError(f"{code!r} is skipped by drop-frame timecode; check the list")
    total = hours * 60 + minutes
    return number - skipped * (total - total // 10)


def _skipped_per_minute(rate: Fraction) -> int:
    if not can_drop(rate):
        raise MomentseekError("drop-frame timecode exists at 29.97 and 59.94 frames per second only")
    return nominal(rate) // 15


def _skipped_numbers(frame: int, rate: Fraction) -> int:
    """Numbers skipped up to a frame: per ten minutes nine times, within them once a minute after the first."""
    skip = _skipped_per_minute(rate)
    in_minute = nominal(rate) * 60 - skip
    tens, rest = divmod(frame, in_minute * 10 + skip)
    return skip * (9 * tens + (max(0, rest - skip) // in_minute))


@dataclass(frozen=True)
class Excerpt:
    """A stretch of a video to put into a timeline; times in seconds, ``rate`` in frames per second of the source."""

    path: Path
    name: str
    start: float
    end: float
    rate: Fraction
    title: str
    """Why the excerpt is there: the query, or what is said."""
    duration: float
    """Length of the whole video, in seconds."""
    width: int | None = None
    height: int | None = None
    audio: bool = True

    def frames(self, rate: Fraction | None = None) -> tuple[int, int]:
        """The first frame and the one after the last, at the source's rate or a given one.

        At least one frame, and within the video.

        >>> Excerpt(Path("a.mp4"), "a.mp4", 1.0, 2.5, Fraction(25), "", 2.0).frames()
        (25, 50)
        """
        rate = self.rate if rate is None else rate
        length = max(1, frame_at(self.duration, rate))
        first = min(max(0, frame_at(self.start, rate)), length - 1)
        return first, min(max(first + 1, frame_at(self.end, rate)), length)


@dataclass(frozen=True)
class ExportText:
    """The text of an exported file, and notes on what its format could not carry."""

    text: str
    notes: tuple[str, ...] = ()


def file_url(path: Path) -> str:
    r"""The file: URL of a path, every byte outside a plain set percent-encoded.

    >>> file_url(Path("/films/a b\n🎬.mp4"))
    'file:///films/a%20b%0A%F0%9F%8E%AC.mp4'
    """
    return "file://" + quote(os.fsencode(Path(os.path.abspath(path)).as_posix()), safe="/:" if os.name == "nt" else "/")
