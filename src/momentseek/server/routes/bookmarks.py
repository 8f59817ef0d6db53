"""Bookmarks: favourite moments and saved searches of each person, and their database.

The API calls them the shelf. Videos are identified by the hash of their bytes, so that a favourite survives when its
file is moved, or removed and added again.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi import Query as InQuery
from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy import (
    Column,
    Connection,
    Double,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    delete,
    func,
    inspect,
    select,
    text,
    update,
)
from starlette.responses import Response

from momentseek.api.library import Library
from momentseek.cluster.replicas.place import source_file
from momentseek.core.pinned_file import PinnedFile
from momentseek.core.reports import safe_cell
from momentseek.media.edit_lists import ExportText
from momentseek.media.sandbox.calls import cut
from momentseek.search.export import clip_name
from momentseek.search.hit import Hit
from momentseek.search.query import MAX_CHARACTERS
from momentseek.server.database import BigId, DatabaseLocation, ServerDatabase, columns
from momentseek.server.errors import ApiError, ConflictError, change_errors, error_responses
from momentseek.server.files import OpenFile, OpenFileResponse, attachment, content_disposition
from momentseek.server.judging.annotate import present_ids
from momentseek.server.routes.export import (
    ChosenMomentIn,
    chosen_hits,
    export_attachment,
    replace_paths_by_names,
    timeline,
)
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
from momentseek.server.security.users import own_name
from momentseek.server.service import Service, ServiceParam, find_video

BOOKMARKS_FILE = "shelf.sqlite"
MAX_KEPT = 2000
"""Largest number of favourites of one person, and of saved searches."""
MAX_PEOPLE = 1000
TABLES = MetaData()
FAVOURITES = Table(
    "favourites",
    TABLES,
    Column("id", BigId, primary_key=True),
    *columns(Text, "person", "video", "name", "query"),
    *columns(Double, "start", "end", "added"),
    *(Column(name, Text) for name in ("note", "tags")),
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
    str, Field(min_length=1, max_length=200, description="A name; must be your own if people have their own tokens."),
    AfterValidator(own_name),
]  # fmt: skip
ShelfId = Annotated[int, InPath(ge=1, le=2**53, description="The id of the bookmark.", examples=[1])]
Words = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Note = Annotated[str, Field(max_length=2000, description="Anything to remember about the moment.")]
Tag = Annotated[str, Field(min_length=1, max_length=50, pattern="^[^,]+$")]
Tags = Annotated[list[Tag], Field(max_length=20, description="Words to sort moments by.")]
ShelfKind = Literal["json", "csv", "edl", "fcpxml", "clips"]
SHELF_COLUMNS = ("name", "start", "end", "query", "note", "tags")
MAX_CLIPS_SECONDS = 3600.0
"""Longest total duration of the clips in one export."""
_KINDS = {"json": "object", "csv": "string", "plain": "string", "xml": "string", "zip": "string"}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            f"{'text' if kind in ('csv', 'plain') else 'application'}/{kind}": {"schema": {"type": type}}
            for kind, type in _KINDS.items()
        },
    },
    **error_responses(404, 409),
}


def _add_notes(db: Connection) -> None:
    """Add the columns for notes and tags to a database of an earlier version."""
    schema = db.get_execution_options().get("schema_translate_map", {}).get(None)
    known = {column["name"] for column in inspect(db).get_columns(FAVOURITES.name, schema=schema)}
    place = FAVOURITES.name if schema is None else f"{schema}.{FAVOURITES.name}"
    for name in ("note", "tags"):
        if name not in known:
            db.execute(text(f"ALTER TABLE {place} ADD COLUMN {name} TEXT"))


class BookmarkStore(ServerDatabase):
    """The open database of bookmarks; use it in one thread and close it soon."""

    name, contents, migrations = "shelf", "bookmarks", (TABLES.create_all, _add_notes)

    def favourites(self, person: str) -> list[Any]:
        """A person's favourite moments, newest first, each with the query that found it."""
        return self._of_person(FAVOURITES, person)

    def searches(self, person: str) -> list[Any]:
        """A person's saved searches, newest first; ``settings`` have the form of the page's addresses."""
        return self._of_person(SEARCHES, person)

    def _of_person(self, table: Table, person: str) -> list[Any]:
        return self.rows(select(table).where(table.c.person == person).order_by(table.c.id.desc()))

    # writing, inside changes()

    def keep_moment(self, person: str, video: str, name: str, start: float, end: float, query: str) -> None:
        """Save a moment; one that is already saved stays as it is."""
        self._check_room(FAVOURITES, person)
        moment = {"video": video, "name": name, "start": start, "end": end}
        self.insert_new(FAVOURITES, person=person, **moment, query=query, added=time.time())

    def keep_search(self, person: str, query: str, settings: str) -> None:
        """Save a search; one that is already saved stays as it is."""
        self._check_room(SEARCHES, person)
        self.insert_new(SEARCHES, person=person, query=query, settings=settings, added=time.time())

    def describe_moment(self, person: str, id: int, note: str, tags: Sequence[str]) -> bool:
        """Set a favourite's note and tags; returns whether there is such a favourite."""
        mine = (FAVOURITES.c.person == person, FAVOURITES.c.id == id)
        kept = ",".join(dict.fromkeys(tags))
        return bool(self.run(update(FAVOURITES).where(*mine).values(note=note, tags=kept)).rowcount)

    def drop_moment(self, person: str, id: int) -> bool:
        """Delete a favourite; returns whether there was one."""
        return self._drop(FAVOURITES, person, id)

    def drop_search(self, person: str, id: int) -> bool:
        """Delete a saved search; returns whether there was one."""
        return self._drop(SEARCHES, person, id)

    def _drop(self, table: Table, person: str, id: int) -> bool:
        return bool(self.run(delete(table).where(table.c.person == person, table.c.id == id)).rowcount)

    def _check_room(self, table: Table, person: str) -> None:
        kept = self.run(select(func.count()).where(table.c.person == person)).scalar_one()
        others = select(func.count(table.c.person.distinct())).where(table.c.person != person)
        if kept >= MAX_KEPT or self.run(others).scalar_one() >= MAX_PEOPLE:
            raise ConflictError("no more bookmarks can be saved here; remove some first", "shelf_full")


class PersonIn(StrictModel):
    """The person whose bookmarks they are."""

    person: Person


class ShelfExportIn(PersonIn):
    """Whose favourites to export, which of them, and in which format."""

    kind: ShelfKind = "json"
    tag: Annotated[str | None, Field(max_length=50, description="Only favourites with this tag.")] = None


class NoteIn(StrictBody):
    """What somebody writes about a favourite."""

    person: Person
    note: Note = ""
    tags: Tags = Field([])


class FavouriteIn(StrictBody):
    """A moment to save."""

    person: Person
    moment: Annotated[str, Field(pattern=MOMENT_ID_PATTERN, examples=["7:4.500-9.000"])]
    query: Words = ""


class SavedSearchIn(StrictBody):
    """A search to save."""

    person: Person
    query: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS, examples=["a dog runs"])]
    settings: Annotated[
        str, Field(max_length=500, description="As in the page's addresses: `localiser=whole&group=video`.")
    ] = ""


class FavouriteOut(BaseModel):
    """A saved moment."""

    id: int
    name: str = Field(description="What the video was called.")
    start: float
    end: float
    query: str = Field(description="The query that found it.")
    added: float = Field(description="Seconds since 1970.")
    note: str
    tags: list[str]
    video_id: int | None = Field(description="Null while the video is not in the library.")
    moment: str | None
    thumbnail: str | None
    media: str | None


class SavedSearchOut(BaseModel):
    """A saved search."""

    id: int
    query: str
    settings: str
    added: float = Field(description="Seconds since 1970.")


class ShelfOut(BaseModel):
    """All bookmarks of a person, newest first."""

    model_config = example({
        "person": "ann", "favourites": [],
        "searches": [{"id": 1, "query": "a dog runs", "settings": "", "added": 1760000000.0}],
    })  # fmt: skip
    person: str
    favourites: list[FavouriteOut]
    searches: list[SavedSearchOut]


@router.get("", summary="A person's bookmarks")
async def shelf(service: ServiceParam, given: Annotated[PersonIn, InQuery()]) -> ShelfOut:
    """A person's favourite moments and saved searches."""
    return await service.readers.run(lambda library: _shelf_out(library, service.database, given.person))


@router.get("/export", summary="Export bookmarks", responses=_FILE, response_class=Response)
async def export_shelf(service: ServiceParam, given: Annotated[ShelfExportIn, InQuery()]) -> Response:
    """All bookmarks as JSON, or the moments as a table, an editor's timeline, or a ZIP archive of clips.

    Moments whose video is not in the library are only exported as JSON and CSV.
    """
    found = await service.readers.run(lambda library: _shelf_out(library, service.database, given.person))
    kept = [one for one in found.favourites if given.tag is None or given.tag in one.tags]
    if given.kind == "json":
        data = json.dumps({**found.model_dump(), "favourites": [one.model_dump() for one in kept]}, ensure_ascii=False)
        return attachment(data.encode(), "application/json", "kept.json")
    if given.kind == "csv":
        return export_attachment(ExportText(_shelf_csv(kept)), "csv", "kept")
    present = [one for one in kept if one.video_id is not None]
    if not present:
        raise ApiError(
            404, "there is no favourite whose video is in the library; save one first (PUT /shelf/favourites)"
        )
    if given.kind == "clips":
        return await service.cutters.run(lambda library: _shelf_clips(library, present))

    def work(library: Library) -> ExportText:
        hits = _shelf_hits(library, present)
        shown = hits if service.settings.loopback else replace_paths_by_names(hits)
        return timeline(given.kind, shown, [one.note or one.query or one.name for one in present], "kept")

    return export_attachment(await service.searchers.run(work), given.kind, "kept")


def _shelf_csv(kept: Sequence[FavouriteOut]) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(SHELF_COLUMNS)
    for one in kept:
        times = (f"{one.start:.3f}", f"{one.end:.3f}")
        texts = [safe_cell(text) for text in (one.name, one.query, one.note, ", ".join(one.tags))]
        writer.writerow([texts[0], *times, *texts[1:]])
    return out.getvalue()


def _shelf_hits(library: Library, kept: Sequence[FavouriteOut]) -> list[Hit]:
    return chosen_hits(library, [ChosenMomentIn(video_id=o.video_id or 0, start=o.start, end=o.end) for o in kept])


def _shelf_clips(library: Library, kept: Sequence[FavouriteOut]) -> Response:
    """A ZIP archive with a frame-accurate clip of each favourite."""
    if sum(one.end - one.start for one in kept) > MAX_CLIPS_SECONDS:
        raise ApiError(422, f"the moments are longer than {MAX_CLIPS_SECONDS / 60:g} minutes together; export one tag")
    folder = tempfile.TemporaryDirectory(prefix="momentseek-")
    try:
        archive = Path(folder.name) / "clips.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            for hit in _shelf_hits(library, kept):
                video = find_video(library, hit.video_id)
                clip = Path(folder.name) / "clip.mp4"
                cut(source_file(video), hit.start, hit.end, clip, exact=True)
                packed.write(clip, clip_name(hit))
        file = OpenFile(PinnedFile(archive.resolve()))
    except BaseException:
        folder.cleanup()
        raise
    return OpenFileResponse(
        file, "application/zip", {"Content-Disposition": content_disposition("clips.zip")}, folder.cleanup
    )


@router.put("/favourites", summary="Save a moment", responses=change_errors(404, 409))
async def keep_moment(service: ServiceParam, given: FavouriteIn) -> ShelfOut:
    """Save a moment among a person's favourites."""
    number, start, end = parse_moment_id(given.moment)

    def keep(store: BookmarkStore, library: Library) -> None:
        video = find_video(library, number)
        if start >= video.duration:
            raise no_such_moment(given.moment)
        store.keep_moment(given.person, video.hash, clean_text(video.name), start, end, clean_text(given.query))

    return await _change(service, given.person, keep)


@router.put("/favourites/{id}", summary="Describe a moment", responses=change_errors(404))
async def describe_moment(service: ServiceParam, id: ShelfId, given: NoteIn) -> ShelfOut:
    """Set the note and the tags of a favourite."""
    note, tags = clean_text(given.note), [clean_text(tag).strip() for tag in given.tags]

    def describe(store: BookmarkStore, person: str, id: int) -> bool:
        return store.describe_moment(person, id, note, [tag for tag in tags if tag])

    return await _change_one(service, given.person, id, describe)


@router.put("/searches", summary="Save a search", responses=change_errors(409))
async def keep_search(service: ServiceParam, given: SavedSearchIn) -> ShelfOut:
    """Save a search among a person's bookmarks."""
    query, settings = clean_text(given.query), clean_text(given.settings)
    return await _change(service, given.person, lambda store, _: store.keep_search(given.person, query, settings))


@router.delete("/favourites/{id}", summary="Delete a saved moment", responses=change_errors(404))
async def drop_moment(service: ServiceParam, id: ShelfId, given: Annotated[PersonIn, InQuery()]) -> ShelfOut:
    """Delete a moment from a person's bookmarks."""
    return await _change_one(service, given.person, id, BookmarkStore.drop_moment)


@router.delete("/searches/{id}", summary="Delete a saved search", responses=change_errors(404))
async def drop_search(service: ServiceParam, id: ShelfId, given: Annotated[PersonIn, InQuery()]) -> ShelfOut:
    """Delete a search from a person's bookmarks."""
    return await _change_one(service, given.person, id, BookmarkStore.drop_search)


async def _change(service: Service, person: str, change: Callable[[BookmarkStore, Library], None]) -> ShelfOut:
    """Change a person's bookmarks in one transaction; returns all of them."""

    def work(library: Library) -> ShelfOut:
        with BookmarkStore(service.database, create=True) as store, store.changes():
            change(store, library)
        return _shelf_out(library, service.database, person)

    return await service.readers.run(work)


async def _change_one(
    service: Service, person: str, id: int, change_one: Callable[[BookmarkStore, str, int], bool]
) -> ShelfOut:
    def change(store: BookmarkStore, _: Library) -> None:
        if not change_one(store, person, id):
            raise ApiError(404, f"this person has no bookmark with the id {id}; GET /api/v1/shelf lists them")

    return await _change(service, person, change)


def _shelf_out(library: Library, database: DatabaseLocation, person: str) -> ShelfOut:
    with BookmarkStore(database) as store:
        favourites, searches = store.favourites(person), store.searches(person)
    ids = present_ids(library.store.catalog, (one.video for one in favourites))
    return ShelfOut(
        person=person,
        favourites=[
            FavouriteOut(
                **same_fields(FavouriteOut, one)
                | {"note": one.note or "", "tags": one.tags.split(",") if one.tags else []},
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
