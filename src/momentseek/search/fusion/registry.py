"""Ways to fuse by name; each file of this folder registers its own, and so may you.

A surer moment always goes first: 0.2 is added for strong and 0.1 for fair, more than any fusion gives. So ranks never
contradict levels, weak moments only ever follow the others, and ways to fuse differ in the order within a level.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

from momentseek.errors import MomentseekError
from momentseek.search.confidence import ORDER
from momentseek.search.fusion.candidate import Candidate

Fusion = Callable[[Sequence[Candidate], Mapping[str, float]], Sequence[float]]
"""Gives each of all candidates a number from 0 to less than ``TIER``, the higher the better.

The mapping has, for a stream, what difference of its scores is much in this library, if that is known.
"""

FUSIONS: dict[str, Fusion] = {}
DEFAULT = "rrf"
TIER = 0.1
"""What a level is worth; weak is worth nothing."""


def register(name: str) -> Callable[[Fusion], Fusion]:
    """Decorate a way to fuse with the name by which ``--fusion`` and ``fusion(NAME)`` find it."""

    def enter(function: Fusion) -> Fusion:
        if name in FUSIONS:
            raise MomentseekError(f"a fusion called {name!r} is there already; choose another name")
        FUSIONS[name] = function
        return function

    return enter


def fusion(name: str = DEFAULT) -> Fusion:
    """The way to fuse called ``name``.

    >>> fusion("score")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no fusion 'score'; did you mean 'scores'?
    """
    if name not in FUSIONS:
        near = difflib.get_close_matches(name, FUSIONS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(FUSIONS))}"
        raise MomentseekError(f"there is no fusion {name!r}; {hint}")
    return FUSIONS[name]


def ranked(
    candidates: Sequence[Candidate], name: str = DEFAULT, units: Mapping[str, float] | None = None
) -> list[Candidate]:
    """Score them, best first; ties by video and time, so that the same search always gives the same answer."""
    for one, value in zip(candidates, fusion(name)(candidates, units or {}), strict=True):
        one.score = TIER * ORDER.index(one.level) + value
    return sorted(candidates, key=lambda c: (-c.score, c.video, c.start, c.end))
