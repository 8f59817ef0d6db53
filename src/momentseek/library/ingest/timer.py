"""How long the stages of an ingest take."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class StageTimer:
    """Adds up the seconds that stages take, those of several threads together.

    >>> timer = StageTimer()
    >>> with timer.stage("encode"):
    ...     pass
    >>> list(timer.seconds)
    ['encode']
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside a ``with`` for the stage ``name``."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begun
            with self._lock:
                self.seconds[name] += spent
