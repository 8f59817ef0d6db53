"""Signs of life from work on media, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def beat() -> None:
    """Say that another piece of a file has been read; costs next to nothing where nobody listens."""
    for listener in _listeners:
        listener()


def listen(listener: Callable[[], None]) -> None:
    """Call ``listener`` at each beat from now on."""
    _listeners.append(listener)
