"""Dates and ages in a query, and the time that they mean."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?")
_AGE = re.compile(r"([0-9]{1,5})([hdwmy])", re.IGNORECASE)
AGE_UNITS = {"h": timedelta(hours=1), "d": timedelta(1), "w": timedelta(7), "m": timedelta(30), "y": timedelta(365)}
DATE_ADVICE = "write 2024, 2024-05 or 2024-05-31, or an age: 12h, 7d, 2w, 6m, 1y"


def date_interval(value: str, now: float = 0.0) -> tuple[float, float]:
    """First and last (exclusive) instant of a date in local time, in seconds since 1970; an age is one instant.

    >>> day = date_interval("2024-02-29")
    >>> round((day[1] - day[0]) / 3600)
    24
    >>> date_interval("7d", now=1e9)
    (999395200.0, 999395200.0)
    """
    if age := _AGE.fullmatch(value):
        instant = now - int(age[1]) * AGE_UNITS[age[2].lower()].total_seconds()
        return instant, instant
    date = _DATE.fullmatch(value)
    if not date or not 1971 <= int(date[1]) <= 9000:  # further back a local midnight has no number everywhere
        raise ValueError(value)
    year, month, day = int(date[1]), int(date[2] or 1), int(date[3] or 1)
    first = datetime(year, month, day)
    if date[3]:
        last = first + timedelta(1)
    elif date[2]:
        last = datetime(year + month // 12, month % 12 + 1, 1)
    else:
        last = datetime(year + 1, 1, 1)
    return first.timestamp(), last.timestamp()


def time_period(after: str | None, before: str | None, now: float) -> tuple[float | None, float | None]:
    """First and last instant that ``after:`` and ``before:`` leave, in seconds since 1970.

    After a year is from the next one on; before a month is before its first day.

    >>> since, until = time_period("2023-12-31", "2024", now=0.0)
    >>> since == until
    True
    >>> time_period("1d", None, now=100_000.0)
    (13600.0, None)
    """
    return (
        date_interval(after, now)[1] if after is not None else None,
        date_interval(before, now)[0] if before is not None else None,
    )
