"""A moment: a stretch of one video."""

from __future__ import annotations

import math
from dataclasses import dataclass

from momentseek.errors import MomentseekError


@dataclass(frozen=True, slots=True)
class Moment:
    """``video`` from ``start`` to ``end`` in seconds, with ``0 <= start < end``.

    >>> Moment("friends_s01e03", 16.48, 33.87)
    Moment(video='friends_s01e03', start=16.48, end=33.87)
    >>> Moment("friends_s01e03", 5, 5)
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: moment 5–5 s of friends_s01e03: start must be before end
    """

    video: str
    start: float
    end: float

    def __post_init__(self) -> None:
        where = f"moment {self.start:g}–{self.end:g} s of {self.video}"
        if not (math.isfinite(self.start) and math.isfinite(self.end)):
            raise MomentseekError(f"{where}: times must be finite numbers")
        if self.start < 0:
            raise MomentseekError(f"{where}: times must not be negative")
        if self.start >= self.end:
            raise MomentseekError(f"{where}: start must be before end")

    @property
    def duration(self) -> float:
        """Length of the moment in seconds."""
        return self.end - self.start
