"""Times as subtitle files write them."""

from __future__ import annotations

import re

TIME_PATTERN = r"-?\s?(?:\d{1,5}\s?:\s?)?\d{1,5}\s?:\s?\d{1,5}(?:\s?[.,:]\s?\d{1,9})?"
"""What may be a time: hours and fraction may be missing, spaces may have crept in. Every run is bounded, so that no
line can make the search for it slow."""
_PARTS = re.compile(r"(-?)(?:(\d+):)?(\d+):(\d+)(?:[.,:](\d+))?")


def seconds(stamp: str) -> float | None:
    """Seconds of a time that matches ``TIME_PATTERN``; None where it is none.

    >>> seconds("01:02:03,450"), seconds("02:03.45"), seconds("-00:00:01,000"), seconds("123:00:00.0")
    (3723.45, 123.45, -1.0, 442800.0)

    Some programs write the milliseconds behind a colon; two fields alone are minutes and seconds.

    >>> seconds("00:00:01:500"), seconds("00:01"), seconds("noon")
    (1.5, 1.0, None)
    """
    parts = _PARTS.fullmatch("".join(stamp.split()))
    if parts is None:
        return None
    sign, hours, minutes, whole, fraction = parts.groups()
    milliseconds = round(int((fraction or "0").ljust(9, "0")[:9]) / 1_000_000)
    total = ((int(hours or 0) * 60 + int(minutes)) * 60 + int(whole)) * 1000 + milliseconds
    return (-total if sign else total) / 1000


def stamp(time: float, mark: str = ",") -> str:
    """A time as SRT writes it, to the millisecond; with ``mark="."`` as WebVTT does.

    >>> stamp(3723.45), stamp(59.9996, ".")
    ('01:02:03,450', '00:01:00.000')
    """
    milliseconds = max(0, round(time * 1000))
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}{mark}{rest % 1000:03d}"
