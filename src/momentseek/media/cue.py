"""What is said when."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cue:
    """Words shown or said from ``start`` to ``end``, in seconds of the video.

    >>> Cue(1.0, 2.5, "Anybody home?").text
    'Anybody home?'
    """

    start: float
    end: float
    text: str
    language: str | None = None
