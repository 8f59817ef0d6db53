"""When two stretches of a video are one moment, and when the one says again what the other says."""

from __future__ import annotations

from collections.abc import Sequence

from momentseek.search.fusion.candidate import Candidate

SAME = 0.5
"""Share of the shorter of two stretches that must lie in the other for them to be one moment."""
INSIDE = 0.5
"""Share of the shorter of two moments that may lie in the other; else the worse is dropped (so IoU stays below too)."""


def same(start: float, end: float, other_start: float, other_end: float) -> bool:
    """Whether two stretches of one video are about the same moment.

    >>> same(10, 12, 8, 20), same(0, 10, 9, 30)
    (True, False)
    """
    return _shared(start, end, other_start, other_end) >= SAME * min(end - start, other_end - other_start)


def distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that do not say again what a better one of the same video says.

    >>> one, two, three = (Candidate(1, *span, 0.0) for span in ((0, 10), (1, 10), (20, 30)))
    >>> [c.start for c in distinct([one, two, three])]
    [0, 20]
    """
    kept: dict[int, list[Candidate]] = {}
    out = []
    for one in candidates:
        if not any(_repeats(one, other) for other in kept.get(one.video, ())):
            kept.setdefault(one.video, []).append(one)
            out.append(one)
    return out


def _repeats(one: Candidate, other: Candidate) -> bool:
    shared = _shared(one.start, one.end, other.start, other.end)
    return shared > INSIDE * min(one.end - one.start, other.end - other.start)


def _shared(start: float, end: float, other_start: float, other_end: float) -> float:
    return max(0.0, min(end, other_end) - max(start, other_start))
