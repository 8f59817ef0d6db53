"""BookmarkStore: favourite moments and saved searches of each person.

Videos are known by the hash of their bytes, so that a favourite outlives a file that is moved, or removed and added
again.
"""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass

from momentseek.core.errors import LibraryBusyError, LibraryError
from momentseek.server.database import ServerDatabase
from momentseek.server.errors import ConflictError

BOOKMARKS_FILE = "shelf.sqlite"
LOCK_WAIT_SECONDS = 10.0
MAX_KEPT = 2000
"""Favourites, and saved searches, that one person can keep."""
MAX_PEOPLE = 1000
SHELF_VERSION = 1
_SCHEMA = """
CREATE TABLE favourites (
    id INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT NOT NULL, video TEXT NOT NULL, name TEXT NOT NULL,
    start REAL NOT NULL, "end" REAL NOT NULL, query TEXT NOT NULL, added REAL NOT NULL,
    UNIQUE (person, video, start, "end")
);
CREATE TABLE searches (
    id INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT NOT NULL, query TEXT NOT NULL, settings TEXT NOT NULL,
    added REAL NOT NULL, UNIQUE (person, query, settings)
);
"""


@dataclass(frozen=True)
class FavouriteRow:
    """A moment that somebody keeps, with the query that found it."""

    id: int
    video: str
    """The hash of the video's bytes."""
    name: str
    start: float
    end: float
    query: str
    added: float


@dataclass(frozen=True)
class SavedSearchRow:
    """A query that somebody keeps, with how to search."""

    id: int
    query: str
    settings: str
    """As in addresses of the page: ``localiser=whole&group=video``."""
    added: float


class BookmarkStore(ServerDatabase):
    """The open database of what people keep; use it in one thread and close it soon."""

    name, schema, version, wait_seconds = "shelf", _SCHEMA, SHELF_VERSION, LOCK_WAIT_SECONDS

    def explain(self, e: Exception) -> LibraryError:
        """An error of SQLite as one that says what to do."""
        text = str(e) if isinstance(e, sqlite3.Error) else "malformed content"
        if "locked" in text or "busy" in text:
            return LibraryBusyError("another process is writing what people keep; try again in a moment")
        return LibraryError(f"{self.path}: cannot be used ({text}); check the disk and the folder's permissions")

    def favourites(self, person: str) -> list[FavouriteRow]:
        """The moments that a person keeps, newest first."""
        sql = """SELECT id, video, name, start, "end", query, added FROM favourites WHERE person = ? ORDER BY id DESC"""
        return [FavouriteRow(*row) for row in self._rows(sql, (person,))]

    def searches(self, person: str) -> list[SavedSearchRow]:
        """The searches that a person keeps, newest first."""
        sql = "SELECT id, query, settings, added FROM searches WHERE person = ? ORDER BY id DESC"
        return [SavedSearchRow(*row) for row in self._rows(sql, (person,))]

    # writing, inside changes()

    def keep_moment(self, person: str, video: str, name: str, start: float, end: float, query: str) -> None:
        """Keep a moment; one that is kept already stays as it is."""
        self._check_room("favourites", person)
        self._db.execute(
            """INSERT INTO favourites (person, video, name, start, "end", query, added)
               VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING""",
            (person, video, name, start, end, query, time.time()),
        )

    def keep_search(self, person: str, query: str, settings: str) -> None:
        """Keep a search; one that is kept already stays as it is."""
        self._check_room("searches", person)
        self._db.execute(
            "INSERT INTO searches (person, query, settings, added) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (person, query, settings, time.time()),
        )

    def drop_moment(self, person: str, id: int) -> bool:
        """Forget a favourite; whether there was such a one."""
        return self._drop("favourites", person, id)

    def drop_search(self, person: str, id: int) -> bool:
        """Forget a saved search; whether there was such a one."""
        return self._drop("searches", person, id)

    def _drop(self, table: str, person: str, id: int) -> bool:
        return bool(self._db.execute(f"DELETE FROM {table} WHERE person = ? AND id = ?", (person, id)).rowcount)

    def _check_room(self, table: str, person: str) -> None:
        kept, people = self._rows(
            f"SELECT (SELECT count(*) FROM {table} WHERE person = ?), (SELECT count(DISTINCT person) FROM {table} "
            "WHERE person != ?)",
            (person, person),
        )[0]
        if kept >= MAX_KEPT or people >= MAX_PEOPLE:
            raise ConflictError("no more can be kept here; remove some first", "shelf_full")
