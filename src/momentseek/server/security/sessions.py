"""Where open sessions are kept: in this process, or in a database that several servers share."""

from __future__ import annotations

from typing import Protocol

from momentseek.server.database import DatabasePlace
from momentseek.server.database.sessions import SharedSessions

MAX_SESSIONS = 1000
"""Sessions that may be open; a new one then ends the oldest."""


class SessionKeep(Protocol):
    """Knows which sessions are open, by a digest of their cookies."""

    def add(self, key: str, end: float, now: float) -> None:
        """Keep a session until its end, in seconds since 1970; forget those that have ended."""
        ...

    def end_of(self, key: str) -> float:
        """When a session ends; 0 if there is none."""
        ...

    def drop(self, key: str) -> None:
        """Forget a session."""
        ...


class MemorySessions:
    """The sessions of one process; they end with it.

    >>> kept = MemorySessions()
    >>> kept.add("a", end=100.0, now=10.0)
    >>> kept.end_of("a"), kept.end_of("b")
    (100.0, 0.0)
    >>> kept.add("b", end=300.0, now=200.0)
    >>> kept.end_of("a")
    0.0
    """

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}
        """Digest of a session's id → when it ends; oldest first."""

    def add(self, key: str, end: float, now: float) -> None:
        """Keep a session until its end; forget those that have ended, and the oldest if there are too many."""
        for old in [old for old, until in self._ends.items() if until <= now]:
            del self._ends[old]
        while len(self._ends) >= MAX_SESSIONS:
            del self._ends[next(iter(self._ends))]
        self._ends[key] = end

    def end_of(self, key: str) -> float:
        """When a session ends; 0 if there is none."""
        return self._ends.get(key, 0.0)

    def drop(self, key: str) -> None:
        """Forget a session."""
        self._ends.pop(key, None)


def open_sessions(place: DatabasePlace) -> SessionKeep:
    """Where a server keeps its sessions."""
    return MemorySessions() if place.address is None else SharedSessions(place, MAX_SESSIONS)
