"""Python's collector of garbage, paused where much is made that stays: it would walk over all of it time and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collector() -> Iterator[None]:
    """Collect nothing for the time of a ``with``; reading a large file or loading a server takes less time so.

    >>> with pause_collector():
    ...     gc.isenabled()
    False
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
