"""BookmarkStore: favourite moments and saved searches of each person.

Videos are known by the hash of their bytes, so that a favourite outlives a file that is moved, or removed and added
again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

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
    """The open database of bookmarks; use it in one thread and close it soon."""

    name, contents, migrations = "shelf", "bookmarks", (TABLES.create_all,)

    def favourites(self, person: str) -> list[FavouriteRow]:
        """The moments that a person keeps, newest first."""
        c = FAVOURITES.c
        asked = select(c.id, c.video, c.name, c.start, c.end, c.query, c.added)
        return [FavouriteRow(*row) for row in self.rows(asked.where(c.person == person).order_by(c.id.desc()))]

    def searches(self, person: str) -> list[SavedSearchRow]:
        """The searches that a person keeps, newest first."""
        c = SEARCHES.c
        asked = select(c.id, c.query, c.settings, c.added).where(c.person == person).order_by(c.id.desc())
        return [SavedSearchRow(*row) for row in self.rows(asked)]

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
