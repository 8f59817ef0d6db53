"""Throttle: how often clients may try wrong tokens."""

from __future__ import annotations

import math
from collections import deque

WINDOW_SECONDS = 60.0
"""How long a wrong try counts."""
MAX_WRONG_PER_CLIENT = 5
MAX_WRONG_IN_TOTAL = 50
"""Wrong tries of one client, and of all clients together: an attacker may have many addresses."""


class Throttle:
    """Remembers wrong tries for a while, and says which clients must wait. Right tries are not counted.

    >>> tries = Throttle()
    >>> for second in range(5):
    ...     tries.note_wrong("192.0.2.7", now=float(second))
    >>> [tries.seconds_to_wait(f"192.0.2.{n}", now=now) for n, now in ((7, 10.0), (8, 10.0), (7, 60.0))]
    [50, 0, 0]
    """

    def __init__(self) -> None:
        self._wrong: deque[tuple[float, str]] = deque(maxlen=MAX_WRONG_IN_TOTAL)
        """Time and client, oldest first; a client that must wait adds nothing, so there are never more."""

    def seconds_to_wait(self, client: str, now: float) -> int:
        """Whole seconds until a client may try again; 0 if it may now."""
        while self._wrong and self._wrong[0][0] <= now - WINDOW_SECONDS:
            self._wrong.popleft()
        full = [
            tries[-most]
            for tries, most in (
                ([at for at, _ in self._wrong], MAX_WRONG_IN_TOTAL),
                ([at for at, who in self._wrong if who == client], MAX_WRONG_PER_CLIENT),
            )
            if len(tries) >= most
        ]
        return max(1, math.ceil(max(full) + WINDOW_SECONDS - now)) if full else 0

    def note_wrong(self, client: str, now: float) -> None:
        """Note a wrong try of a client."""
        self._wrong.append((now, client))
