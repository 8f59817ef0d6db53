"""Encoders by name; each is loaded once per process, at its first use."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import cache

from momentseek.encoders.protocol import TextEncoder
from momentseek.errors import MomentseekError


def _minilm() -> TextEncoder:
    from momentseek.encoders.minilm import load

    return load()


TEXT_ENCODERS: dict[str, Callable[[], TextEncoder]] = {"minilm": _minilm}
"""Name → what loads it."""
FILE = "file:"


def register(name: str, load: Callable[[], TextEncoder]) -> None:
    """Add an encoder of your own, so that ``--encoder NAME`` and ``text_encoder(NAME)`` find it."""
    if name in TEXT_ENCODERS:
        raise MomentseekError(f"a text encoder called {name!r} is there already; choose another name")
    TEXT_ENCODERS[name] = load


def text_encoder(name: str = "minilm") -> TextEncoder:
    """The encoder called ``name``, or ``file:PATH``: vectors that another model made (see ``lookup``).

    >>> text_encoder("minilmm")
    Traceback (most recent call last):
        ...
    momentseek.errors.MomentseekError: there is no text encoder 'minilmm'; did you mean 'minilm'?
    """
    if name.startswith(FILE):
        from momentseek.encoders.lookup import read

        return read(name.removeprefix(FILE))
    if name not in TEXT_ENCODERS:
        near = difflib.get_close_matches(name, TEXT_ENCODERS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(TEXT_ENCODERS)}"
        raise MomentseekError(f"there is no text encoder {name!r}; {hint}")
    return _loaded(name)


@cache
def _loaded(name: str) -> TextEncoder:
    return TEXT_ENCODERS[name]()
