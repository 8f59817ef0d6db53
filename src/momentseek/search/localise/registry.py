"""Localisers by name; each file of this folder registers its own, and so may you."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from momentseek.errors import MomentseekError
from momentseek.search.localise.curve import Curve
from momentseek.search.localise.spans import Spans

Localiser = Callable[[Curve], Spans]
"""Proposes spans on a curve, best first: at least one, all inside the video."""

LOCALISERS: dict[str, Localiser] = {}
DEFAULT = "scenes"


def register(name: str) -> Callable[[Localiser], Localiser]:
    """Decorate a localiser with the name by which ``--localiser`` and ``localiser(NAME)`` find it."""

    def enter(function: Localiser) -> Localiser:
        if name in LOCALISERS:
            raise MomentseekError(f"a localiser called {name!r} is there already; choose another name")
        LOCALISERS[name] = function
        return function

    return enter


def localiser(name: str = DEFAULT) -> Localiser:
    """The localiser called ``name``.

    >>> localiser("watersheds")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no localiser 'watersheds'; did you mean 'watershed'?
    """
    if name not in LOCALISERS:
        near = difflib.get_close_matches(name, LOCALISERS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(LOCALISERS))}"
        raise MomentseekError(f"there is no localiser {name!r}; {hint}")
    return LOCALISERS[name]
