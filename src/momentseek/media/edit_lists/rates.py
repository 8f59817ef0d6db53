"""Frame rates that editing programs work at, and which of them fits a list of sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from momentseek.errors import MomentseekError

EDITABLE = (
    Fraction(24000, 1001),
    Fraction(24),
    Fraction(25),
    Fraction(30000, 1001),
    Fraction(30),
    Fraction(50),
    Fraction(60000, 1001),
    Fraction(60),
)
"""23.976, 24, 25, 29.97, 30, 50, 59.94 and 60 frames per second."""


def editable(rate: Fraction) -> Fraction:
    """The rate to edit a source at: its own, a multiple or whole part of it, or the nearest one.

    >>> [str(editable(Fraction(rate))) for rate in ("25", "15", "240", "30000/1001", "11991/999", "1")]
    ['25', '30', '60', '30000/1001', '24000/1001', '24']
    """
    if rate <= 0:
        raise MomentseekError(f"a frame rate of {rate} is none; give a positive one")
    exact = [usual for usual in EDITABLE if (usual / rate).denominator == 1 or (rate / usual).denominator == 1]
    return min(exact or EDITABLE, key=lambda usual: (abs(usual - rate), usual))


def commonest(rates: Iterable[Fraction]) -> Fraction:
    """The rate most sources are edited at; of two equally common ones the faster, which loses less.

    >>> commonest([Fraction(25), Fraction(50), Fraction(50)]), commonest([])
    (Fraction(50, 1), Fraction(25, 1))
    """
    counts = Counter(map(editable, rates))
    return max(counts, key=lambda rate: (counts[rate], rate)) if counts else Fraction(25)


def spoken(rate: Fraction) -> str:
    """A rate as people say it.

    >>> spoken(Fraction(30000, 1001)), spoken(Fraction(25))
    ('29.97', '25')
    """
    return f"{float(rate):.3f}".rstrip("0").rstrip(".")


def parsed(text: str) -> Fraction:
    """A rate as people or files write it.

    >>> parsed("29.97"), parsed("30000/1001"), parsed("25")
    (Fraction(30000, 1001), Fraction(30000, 1001), Fraction(25, 1))
    """
    try:
        rate = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise MomentseekError(f"{text!r} is no frame rate; write it as 25, 29.97 or 30000/1001") from None
    near = [usual for usual in EDITABLE if abs(usual - rate) < Fraction(1, 150)]
    return min(near, key=lambda usual: abs(usual - rate)) if near else rate
