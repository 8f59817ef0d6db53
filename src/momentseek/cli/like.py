"""``--like VIDEO@TIME``: how a moment is named on the command line."""

from __future__ import annotations

import re

from momentseek.errors import MomentseekError
from momentseek.moments import Moment

CLOCK = r"(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d+)?)"
SPAN = re.compile(rf"(?P<start>{CLOCK})(?:[-–](?P<end>{CLOCK}))?")
POINT_SECONDS = 0.001
"""Length of a moment that is only a time: shorter than any clip, so that one clip is meant."""


def parse_place(text: str) -> Moment:
    """A moment from ``VIDEO@TIME`` or ``VIDEO@START-END``; times are seconds, or minutes and seconds.

    >>> parse_place("trip.mp4@1:20"), parse_place("a@b.mp4@75.5-1:20")
    (Moment(video='trip.mp4', start=80.0, end=80.001), Moment(video='a@b.mp4', start=75.5, end=80.0))
    """
    video, _, times = text.rpartition("@")
    found = SPAN.fullmatch(times.strip())
    if not video or found is None:
        raise MomentseekError(f"{text!r} names no moment; write VIDEO@TIME or VIDEO@START-END, as trip.mp4@1:20-1:28")
    start = _seconds(found["start"])
    end = _seconds(found["end"]) if found["end"] else start + POINT_SECONDS
    return Moment(video, start, end)


def _seconds(clock: str) -> float:
    seconds = 0.0
    for part in clock.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds
