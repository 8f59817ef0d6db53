"""Moments by name: a video's id and the times, as `7:4.500-9.000`; the same for everybody, and for good."""

from __future__ import annotations

import re

from momentseek.library.catalog import Catalog
from momentseek.media.cue import Cue
from momentseek.server.errors import ApiError

PATTERN = r"^([1-9][0-9]{0,14}):([0-9]{1,7}\.[0-9]{3})-([0-9]{1,7}\.[0-9]{3})$"
ROUNDING = 0.001
"""Seconds that a time in an id may lie after the video's end."""


def moment_id(video: int, start: float, end: float) -> str:
    """The name of a moment; times are rounded to milliseconds.

    >>> moment_id(7, 4.5, 9.0)
    '7:4.500-9.000'
    """
    return f"{video}:{start:.3f}-{end:.3f}"


def parse(id: str) -> tuple[int, float, float]:
    """Video, start and end of a moment's name; 404 where it names none.

    >>> parse("7:4.500-9.000")
    (7, 4.5, 9.0)
    """
    match = re.fullmatch(PATTERN, id)
    if match is None or not float(match[2]) < float(match[3]):
        raise unknown(id)
    return int(match[1]), float(match[2]), float(match[3])


def unknown(id: str) -> ApiError:
    """That there is no such moment."""
    return ApiError(404, f"there is no moment {id[:60]}; a search names those there are, as 7:4.500-9.000")


def said_in(catalog: Catalog, video: int, start: float, end: float) -> tuple[Cue, ...]:
    """The cues that overlap a moment."""
    return tuple(cue for cue in catalog.cues(video) if cue.start < end and start < cue.end)
