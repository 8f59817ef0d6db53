"""Bookmarks: favourite moments and saved searches of each person, and the database of them.

The API calls them the shelf. Videos are known by the hash of their bytes, so that a favourite outlives a file that is
moved, or removed and added again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi import Query as InQuery
from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy import Column, Double, MetaData, Table, Text, UniqueConstraint, delete, func, select
from starlette.responses import Response

from momentseek.api.library import Library
from momentseek.search.query import MAX_CHARACTERS
from momentseek.server.database import BigId, DatabaseLocation, ServerDatabase, columns
from momentseek.server.errors import ApiError, ConflictError, change_errors
from momentseek.server.files import attachment
from momentseek.server.judging.annotate import normalise_annotator, present_ids
from momentseek.server.routes.videos import MOMENT_ID_PATTERN, no_such_moment, parse_moment_id
from momentseek.server.schemas import (
    StrictBody,
    StrictModel,
    clean_text,
    example,
    media_url,
    moment_id,
    same_fields,
    thumbnail_url,
)
from momentseek.server.service import Service, ServiceParam, find_video

BOOKMARKS_FILE = "shelf.sqlite"
MAX_KEPT = 2000
"""Favourites, and saved searches, that one person can keep."""
MAX_PEOPLE = 1000
TABLES = MetaData()
FAVOURITES = Table(
    "favourites",
    TABLES,
    Column("id", BigId, primary_key=True),
    *columns(Text, "person", "video", "name"),
    *columns(Double, "start", "end"),
    Column("query", Text, nullable=False),
    Column("added", Double, nullable=False),
    UniqueConstraint("person", "video", "start", "end"),
    sqlite_autoincrement=True,
)
SEARCHES = Table(
    "searches",
    TABLES,
    Column("id", BigId, primary_key=True),
    *columns(Text, "person", "query", "settings"),
    Column("added", Double, nullable=False),
    UniqueConstraint("person", "query", "settings"),
    sqlite_autoincrement=True,
)
router = APIRouter(prefix="/shelf", tags=["shelf"])
Person = Annotated[
    str, Field(min_length=1, max_length=200, description="A name; nobody checks who uses it."),
    AfterValidator(normalise_annotator),
]  # fmt: skip
ShelfId = Annotated[int, InPath(ge=1, le=2**53, description="The id on the shelf.", examples=[1])]
Words = Annotated[str, Field(max_length=MAX_CHARACTERS)]
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {"application/json": {"schema": {"type": "object"}}}}
}


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


class PersonIn(StrictModel):
    """Whose shelf."""

    person: Person


class FavouriteIn(StrictBody):
    """A moment to keep."""

    person: Person
    moment: Annotated[str, Field(pattern=MOMENT_ID_PATTERN, examples=["7:4.500-9.000"])]
    query: Words = ""


class SavedSearchIn(StrictBody):
    """A search to keep."""

    person: Person
    query: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS, examples=["a dog runs"])]
    settings: Annotated[
        str, Field(max_length=500, description="As in the page's addresses: `localiser=whole&group=video`.")
    ] = ""


class FavouriteOut(BaseModel):
    """A moment that somebody keeps."""

    id: int
    name: str = Field(description="What the video was called.")
    start: float
    end: float
    query: str = Field(description="The query that found it.")
    added: float = Field(description="Seconds since 1970.")
    video_id: int | None = Field(description="Null while the video is not in the library.")
    moment: str | None
    thumbnail: str | None
    media: str | None


class SavedSearchOut(BaseModel):
    """A search that somebody keeps."""

    id: int
    query: str
    settings: str
    added: float = Field(description="Seconds since 1970.")


class ShelfOut(BaseModel):
    """All that a person keeps, newest first."""

    model_config = example({
        "person": "ann", "favourites": [],
        "searches": [{"id": 1, "query": "a dog runs", "settings": "", "added": 1760000000.0}],
    })  # fmt: skip
    person: str
    favourites: list[FavouriteOut]
    searches: list[SavedSearchOut]


@router.get("", summary="What somebody keeps")
async def shelf(service: ServiceParam, given: Annotated[PersonIn, InQuery()]) -> ShelfOut:
    """A person's favourite moments and saved searches."""
    return await service.readers.run(lambda library: _shelf_out(library, service.database, given.person))


@router.get("/export", summary="What somebody keeps, as a file", responses=_FILE, response_class=Response)
async def export_shelf(service: ServiceParam, given: Annotated[PersonIn, InQuery()]) -> Response:
    """The same as a JSON file to save."""
    found = await service.readers.run(lambda library: _shelf_out(library, service.database, given.person))
    data = json.dumps(found.model_dump(), ensure_ascii=False, indent=1).encode()
    return attachment(data, "application/json", "kept.json")


@router.put("/favourites", summary="Keep a moment", responses=change_errors(404, 409))
async def keep_moment(service: ServiceParam, given: FavouriteIn) -> ShelfOut:
    """Keep a moment among a person's favourites."""
    number, start, end = parse_moment_id(given.moment)

    def keep(store: BookmarkStore, library: Library) -> None:
        video = find_video(library, number)
        if start >= video.duration:
            raise no_such_moment(given.moment)
        store.keep_moment(given.person, video.hash, clean_text(video.name), start, end, clean_text(given.query))

    return await _change(service, given.person, keep)


@router.put("/searches", summary="Keep a search", responses=change_errors(409))
async def keep_search(service: ServiceParam, given: SavedSearchIn) -> ShelfOut:
    """Keep a search."""
    query, settings = clean_text(given.query), clean_text(given.settings)
    return await _change(service, given.person, lambda store, _: store.keep_search(given.person, query, settings))


@router.delete("/favourites/{id}", summary="Forget a moment", responses=change_errors(404))
async def drop_moment(service: ServiceParam, id: ShelfId, given: Annotated[PersonIn, InQuery()]) -> ShelfOut:
    """Take a moment off a person's shelf."""
    return await _drop(service, given.person, id, BookmarkStore.drop_moment)


@router.delete("/searches/{id}", summary="Forget a search", responses=change_errors(404))
async def drop_search(service: ServiceParam, id: ShelfId, given: Annotated[PersonIn, InQuery()]) -> ShelfOut:
    """Take a search off a person's shelf."""
    return await _drop(service, given.person, id, BookmarkStore.drop_search)


async def _change(service: Service, person: str, change: Callable[[BookmarkStore, Library], None]) -> ShelfOut:
    """Change a person's bookmarks in one transaction; returns all of them."""

    def work(library: Library) -> ShelfOut:
        with BookmarkStore(service.database, create=True) as store, store.changes():
            change(store, library)
        return _shelf_out(library, service.database, person)

    return await service.readers.run(work)


async def _drop(service: Service, person: str, id: int, drop: Callable[[BookmarkStore, str, int], bool]) -> ShelfOut:
    def change(store: BookmarkStore, _: Library) -> None:
        if not drop(store, person, id):
            raise ApiError(404, f"nothing with the id {id} is kept by this person; GET /api/v1/shelf lists what is")

    return await _change(service, person, change)


def _shelf_out(library: Library, database: DatabaseLocation, person: str) -> ShelfOut:
    with BookmarkStore(database) as store:
        favourites, searches = store.favourites(person), store.searches(person)
    ids = present_ids(library.store.catalog, (one.video for one in favourites))
    return ShelfOut(
        person=person,
        favourites=[
            FavouriteOut(
                **same_fields(FavouriteOut, one),
                video_id=video,
                moment=None if video is None else moment_id(video, one.start, one.end),
                thumbnail=None if video is None else thumbnail_url(video, (one.start + one.end) / 2),
                media=None if video is None else media_url(video),
            )
            for one in favourites
            for video in [ids.get(one.video)]
        ],
        searches=[SavedSearchOut(**same_fields(SavedSearchOut, one)) for one in searches],
    )
