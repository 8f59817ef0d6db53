"""SharedSessions: open sessions in a database, so that a person who logged in at one server is known to all."""

from __future__ import annotations

from momentseek.errors import LibraryError
from momentseek.server.database.store import DatabasePlace, ServerDatabase

SESSIONS_VERSION = 1
_SCHEMA = "CREATE TABLE sessions (key TEXT PRIMARY KEY, until REAL NOT NULL);"


class SessionStore(ServerDatabase):
    """The open database of sessions; a key is a digest, so that reading the table gives nobody a cookie."""

    name, schema, version, wait_seconds = "sessions", _SCHEMA, SESSIONS_VERSION, 10.0

    def explain(self, e: Exception) -> LibraryError:
        """An error of SQLite as one that says what to do."""
        return LibraryError(f"{self.path}: the sessions cannot be used ({e}); check the folder's permissions")

    def end_of(self, key: str) -> float:
        """When a session ends; 0 if there is none."""
        rows = self._rows("SELECT until FROM sessions WHERE key = ?", (key,))
        return float(rows[0][0]) if rows else 0.0

    def add(self, key: str, end: float, now: float, most: int) -> None:
        """Keep a session; forget those that have ended, and the oldest if there are too many. Inside changes()."""
        self._db.execute("DELETE FROM sessions WHERE until <= ?", (now,))
        self._db.execute(
            """DELETE FROM sessions WHERE key NOT IN (SELECT key FROM sessions ORDER BY until DESC LIMIT ?)""",
            (most - 1,),
        )
        self._db.execute("INSERT INTO sessions VALUES (?, ?)", (key, end))

    def drop(self, key: str) -> None:
        """Forget a session; inside changes()."""
        self._db.execute("DELETE FROM sessions WHERE key = ?", (key,))


class SharedSessions:
    """The sessions of all servers that share a database."""

    def __init__(self, place: DatabasePlace, most: int) -> None:
        self._place, self._most = place, most

    def add(self, key: str, end: float, now: float) -> None:
        """Keep a session until its end, in seconds since 1970."""
        with SessionStore(self._place, create=True) as store, store.changes():
            store.add(key, end, now, self._most)

    def end_of(self, key: str) -> float:
        """When a session ends; 0 if there is none."""
        with SessionStore(self._place) as store:
            return store.end_of(key)

    def drop(self, key: str) -> None:
        """Forget a session."""
        with SessionStore(self._place, create=True) as store, store.changes():
            store.drop(key)
