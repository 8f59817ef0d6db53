"""Where the time goes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class StageTimer:
    """Adds up seconds by stage; each stage is used by one thread only.

    >>> clock = StageTimer()
    >>> with clock.stage("encode"):
    ...     pass
    >>> list(clock.seconds)
    ['encode']
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """The time inside counts for ``name``."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - begun
