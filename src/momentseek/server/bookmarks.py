"""BookmarkStore: favourite moments and saved searches of each person.

Videos are known by the hash of their bytes, so that a favourite outlives a file that is moved, or removed and added
again.
"""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Column, Double, MetaData, Table, Text, UniqueConstraint, delete, func, select

from momentseek.server.database import BigId, ServerDatabase
from momentseek.server.errors import ConflictError

BOOKMARKS_FILE = "shelf.sqlite"
MAX_KEPT = 2000
"""Favourites, and saved searches, that one person can keep."""
MAX_PEOPLE = 1000
TABLES = MetaData()
FAVOURITES = Table(
    "favourites",
    TABLES,
    Column("id", BigId, primary_key=True),
    Column("person", Text, nullable=False),
    Column("video", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("start", Double, nullable=False),
    Column("end", Double, nullable=False),
    Column("query", Text, nullable=False),
    Column("added", Double, nullable=False),
    UniqueConstraint("person", "video", "start", "end"),
    sqlite_autoincrement=True,
)
SEARCHES = Table(
    "searches",
    TABLES,
    Column("id", BigId, primary_key=True),
    Column("person", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("added", Double, nullable=False),
    UniqueConstraint("person", "query", "settings"),
    sqlite_autoincrement=True,
)


class BookmarkStore(ServerDatabase):
    """The open database of bookmarks; use it in one thread and close it soon."""

    name, contents, migrations = "shelf", "bookmarks", (TABLES.create_all,)

    def favourites(self, person: str) -> list[Any]:
        """The moments that a person keeps, newest first; each with the query that found it."""
        return self._of_person(FAVOURITES, person)

    def searches(self, person: str) -> list[Any]:
        """The searches that a person keeps, newest first; ``settings`` are as in addresses of the page."""
        return self._of_person(SEARCHES, person)

    def _of_person(self, table: Table, person: str) -> list[Any]:
        return self.rows(select(table).where(table.c.person == person).order_by(table.c.id.desc()))

    # writing, inside changes()

    def keep_moment(self, person: str, video: str, name: str, start: float, end: float, query: str) -> None:
        """Keep a moment; one that is kept already stays as it is."""
        self._check_room(FAVOURITES, person)
        moment = {"video": video, "name": name, "start": start, "end": end}
        self.insert_new(FAVOURITES, person=person, **moment, query=query, added=time.time())

    def keep_search(self, person: str, query: str, settings: str) -> None:
        """Keep a search; one that is kept already stays as it is."""
        self._check_room(SEARCHES, person)
        self.insert_new(SEARCHES, person=person, query=query, settings=settings, added=time.time())

    def drop_moment(self, person: str, id: int) -> bool:
        """Forget a favourite; returns whether there was one."""
        return self._drop(FAVOURITES, person, id)

    def drop_search(self, person: str, id: int) -> bool:
        """Forget a saved search; returns whether there was one."""
        return self._drop(SEARCHES, person, id)

    def _drop(self, table: Table, person: str, id: int) -> bool:
        return bool(self.run(delete(table).where(table.c.person == person, table.c.id == id)).rowcount)

    def _check_room(self, table: Table, person: str) -> None:
        kept = self.run(select(func.count()).where(table.c.person == person)).scalar_one()
        others = select(func.count(table.c.person.distinct())).where(table.c.person != person)
        if kept >= MAX_KEPT or self.run(others).scalar_one() >= MAX_PEOPLE:
            raise ConflictError("no more can be kept here; remove some first", "shelf_full")
