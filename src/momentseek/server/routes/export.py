"""Taking moments away: tables, subtitles and timelines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import Field, model_validator
from starlette.responses import Response

from momentseek.api import Library
from momentseek.errors import MomentseekError
from momentseek.media.edit_lists import EditListText, Excerpt, write_edl, write_fcpxml
from momentseek.search import Hit
from momentseek.search.export import render
from momentseek.server.answers import Body, Seconds, text
from momentseek.server.asked import MOST, AskedInAddress, search
from momentseek.server.errors import CHANGING, ApiError, documented
from momentseek.server.files import disposition
from momentseek.server.moments import said_in
from momentseek.server.service import Serving

router = APIRouter(tags=["export"])
Kind = Literal["csv", "json", "srt", "edl", "fcpxml", "html"]
TYPES: dict[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "srt": "application/x-subrip",
    "edl": "text/plain; charset=utf-8",
    "fcpxml": "application/xml",
    "html": "text/html; charset=utf-8",
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            kind.partition(";")[0]: {"schema": {"type": "object" if name == "json" else "string"}}
            for name, kind in TYPES.items()
        },
    },
    **documented(404, 409),
}


class ExportIn(AskedInAddress):
    """A search and the kind of file for it."""

    kind: Kind


class ChosenIn(Body):
    """A moment that somebody chose, with bounds of their own."""

    video_id: Annotated[int, Field(ge=1, le=2**53)]
    start: Seconds
    end: Seconds
    title: Annotated[str, Field(max_length=500)] = ""

    @model_validator(mode="after")
    def _ordered(self) -> ChosenIn:
        if not self.start < self.end:
            raise ValueError("the start must lie before the end")
        return self


class SelectionIn(Body):
    """Moments that somebody chose."""

    kind: Kind
    title: Annotated[str, Field(max_length=500)] = "Moments"
    hits: Annotated[list[ChosenIn], Field(min_length=1, max_length=MOST)]


@router.get("/export", summary="Export a search", responses=_FILE, response_class=Response)
async def export_get(service: Serving, asked: Annotated[ExportIn, InQuery()]) -> Response:
    """The moments of a search as a file."""

    def work(library: Library) -> tuple[EditListText, str]:
        page = search(library, asked, service.settings.rerankers)
        query = str(page.results.query)
        shown = page.hits if service.settings.loopback else elsewhere(page.hits)
        return render(shown, query, asked.kind, _pictures(library, asked.kind, page.hits)), query

    written, query = await service.searchers.run(work)
    return _attachment(written, asked.kind, query)


@router.post("/export", summary="Export a selection", responses={**_FILE, **CHANGING}, response_class=Response)
async def export_post(service: Serving, given: SelectionIn) -> Response:
    """Moments of one's own choice as a file."""

    def work(library: Library) -> EditListText:
        found = _hits(library, given.hits)
        hits = found if service.settings.loopback else elsewhere(found)
        titles = [text(one.title) or text(given.title) for one in given.hits]
        if given.kind in ("edl", "fcpxml"):  # these carry a title for each
            excerpts = [
                Excerpt(h.path, h.name, h.start, h.end, h.rate, title, h.duration)
                for h, title in zip(hits, titles, strict=True)
            ]
            return (write_edl if given.kind == "edl" else write_fcpxml)(excerpts, text(given.title) or "Moments")
        return render(hits, text(given.title), given.kind, _pictures(library, given.kind, found))

    return _attachment(await service.searchers.run(work), given.kind, given.title)


def _hits(library: Library, chosen: Sequence[ChosenIn]) -> list[Hit]:
    """As a search would have found them; 404 if a video is not there, 422 if a moment begins after its end."""
    videos = {video.id: video for video in library.catalog.videos({one.video_id for one in chosen})}
    hits = []
    for rank, one in enumerate(chosen, 1):
        video = videos.get(one.video_id)
        if video is None:
            raise ApiError(404, f"there is no video {one.video_id}; it may have been removed or changed since")
        if one.start >= video.duration:
            raise ApiError(422, f"moment {rank} begins after the end of video {video.id} ({video.duration:g} s)")
        end = min(one.end, video.duration)
        said = said_in(library.catalog, video.id, one.start, end)
        where = (video.id, video.path, video.name, one.start, end)
        hits.append(Hit(rank, *where, 0.0, "fair", (one.start + end) / 2, video.duration, video.rate, said))
    return hits


def elsewhere(hits: Sequence[Hit]) -> list[Hit]:
    """For clients on other machines, where our paths mean nothing and are nobody's business: names for paths.

    Editors find the files again by these. Videos that share a name are told apart by a folder with their id.
    """
    first: dict[str, int] = {}
    placed = []
    for hit in hits:
        name = hit.name.lstrip("/")
        alone = first.setdefault(name, hit.video_id) == hit.video_id
        placed.append(replace(hit, path=Path("/", name) if alone else Path("/", str(hit.video_id), name)))
    return placed


def _pictures(library: Library, kind: str, hits: Sequence[Hit]) -> Any:
    paths = {hit.video_id: hit.path for hit in hits}

    def picture(hit: Hit) -> bytes | None:
        try:
            return library.thumbnail(replace(hit, path=paths[hit.video_id]))
        except MomentseekError:
            return None

    return picture if kind == "html" else None


def _attachment(written: EditListText, kind: str, title: str) -> Response:
    stem = re.sub(r"[^\w -]+", "", text(title)).strip()[:60] or "moments"
    headers = {"Content-Disposition": disposition(f"{stem}.{kind}")}
    return Response(written.text.encode("utf-8", "replace"), media_type=TYPES[kind], headers=headers)
