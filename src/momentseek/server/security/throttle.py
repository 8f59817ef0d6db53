"""Throttle: how often somebody may be wrong."""

from __future__ import annotations

import math
from collections import deque

WINDOW = 60.0
"""Seconds for which a wrong try counts."""
PER_CLIENT = 5
IN_TOTAL = 50
"""Wrong tries of one client, and of all; many addresses are cheap to have."""


class Throttle:
    """Remembers wrong tries for a while, and says who must wait. Right ones are not counted.

    >>> tries = Throttle()
    >>> for second in range(5):
    ...     tries.wrong("192.0.2.7", now=float(second))
    >>> tries.wait("192.0.2.7", now=10.0), tries.wait("192.0.2.8", now=10.0), tries.wait("192.0.2.7", now=60.0)
    (50, 0, 0)
    """

    def __init__(self) -> None:
        self._wrong: deque[tuple[float, str]] = deque(maxlen=IN_TOTAL)
        """When and who, the oldest first; who must wait adds nothing, so that it never holds more."""

    def wait(self, client: str, now: float) -> int:
        """Whole seconds until this client may try again; 0 if it may now."""
        while self._wrong and self._wrong[0][0] <= now - WINDOW:
            self._wrong.popleft()
        full = [
            tries[-most]
            for tries, most in (
                ([at for at, _ in self._wrong], IN_TOTAL),
                ([at for at, who in self._wrong if who == client], PER_CLIENT),
            )
            if len(tries) >= most
        ]
        return max(1, math.ceil(max(full) + WINDOW - now)) if full else 0

    def wrong(self, client: str, now: float) -> None:
        """Note a wrong try."""
        self._wrong.append((now, client))
