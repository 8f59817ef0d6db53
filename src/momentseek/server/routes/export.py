"""Routes to export moments as tables, subtitles and editors' timelines."""

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

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.media.edit_lists import ExportText, write_edl, write_fcpxml
from momentseek.search.export import excerpts, render
from momentseek.search.hit import Hit
from momentseek.server.errors import BODY_ERRORS, ApiError, error_responses
from momentseek.server.files import attachment
from momentseek.server.hits import texts_between
from momentseek.server.schemas import MAX_HITS, SearchParametersIn, Seconds, StrictBody, clean_text, search_library
from momentseek.server.service import ServiceParam

router = APIRouter(tags=["export"])
Kind = Literal["csv", "json", "srt", "edl", "fcpxml", "html"]
EXPORT_MEDIA_TYPES: dict[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "srt": "application/x-subrip",
    "edl": "text/plain; charset=utf-8",
    "fcpxml": "application/xml",
    "html": "text/html; charset=utf-8",
}
_FILE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            kind.partition(";")[0]: {"schema": {"type": "object" if name == "json" else "string"}}
            for name, kind in EXPORT_MEDIA_TYPES.items()
        },
    },
    **error_responses(404, 409),
}


class SearchExportIn(SearchParametersIn):
    """A search and the kind of file to write."""

    kind: Kind


class ChosenMomentIn(StrictBody):
    """A moment that a person chose, with their own start and end."""

    video_id: Annotated[int, Field(ge=1, le=2**53)]
    start: Seconds
    end: Seconds
    title: Annotated[str, Field(max_length=500)] = ""

    @model_validator(mode="after")
    def _check_order(self) -> ChosenMomentIn:
        if not self.start < self.end:
            raise ValueError("the start must be before the end")
        return self


class SelectionIn(StrictBody):
    """Moments that a person chose."""

    kind: Kind
    title: Annotated[str, Field(max_length=500)] = "Moments"
    hits: Annotated[list[ChosenMomentIn], Field(min_length=1, max_length=MAX_HITS)]


@router.get("/export", summary="Export a search", responses=_FILE_RESPONSES, response_class=Response)
async def export_get(service: ServiceParam, asked: Annotated[SearchExportIn, InQuery()]) -> Response:
    """Export the hits of a search as a file."""

    def work(library: Library) -> tuple[ExportText, str]:
        results = search_library(library, asked, service.settings.rerankers)
        hits = results[asked.offset : asked.offset + asked.k]
        query = str(results.query)
        shown = hits if service.settings.loopback else replace_paths_by_names(hits)
        return render(shown, query, asked.kind, _pictures(library, asked.kind, hits)), query

    written, query = await service.searchers.run(work)
    return export_attachment(written, asked.kind, query)


@router.post(
    "/export", summary="Export a selection", responses={**_FILE_RESPONSES, **BODY_ERRORS}, response_class=Response
)
async def export_post(service: ServiceParam, given: SelectionIn) -> Response:
    """Export chosen moments as a file."""

    def work(library: Library) -> ExportText:
        found = chosen_hits(library, given.hits)
        hits = found if service.settings.loopback else replace_paths_by_names(found)
        titles = [clean_text(one.title) or clean_text(given.title) for one in given.hits]
        if given.kind in TIMELINES:  # these have a title for each moment
            return timeline(given.kind, hits, titles, clean_text(given.title))
        return render(hits, clean_text(given.title), given.kind, _pictures(library, given.kind, found))

    return export_attachment(await service.searchers.run(work), given.kind, given.title)


TIMELINES = {"edl": write_edl, "fcpxml": write_fcpxml}


def timeline(kind: str, hits: Sequence[Hit], titles: Sequence[str], title: str) -> ExportText:
    """An editor's timeline of moments, each with its own title."""
    found = [replace(one, title=name) for one, name in zip(excerpts(hits, ""), titles, strict=True)]
    return TIMELINES[kind](found, title or "Moments")


def chosen_hits(library: Library, chosen: Sequence[ChosenMomentIn]) -> list[Hit]:
    """The chosen moments as hits; 404 if a video is not in the library, 422 if a moment starts after its video ends."""
    videos = {video.id: video for video in library.store.catalog.videos({one.video_id for one in chosen})}
    hits = []
    for rank, one in enumerate(chosen, 1):
        video = videos.get(one.video_id)
        if video is None:
            raise ApiError(404, f"there is no video {one.video_id}; it may have been removed or changed since")
        if one.start >= video.duration:
            raise ApiError(422, f"moment {rank} starts after the end of video {video.id} ({video.duration:g} s)")
        end = min(one.end, video.duration)
        hits.append(
            Hit(
                rank=rank,
                video_id=video.id,
                path=video.path,
                name=video.name,
                start=one.start,
                end=end,
                peak=(one.start + end) / 2,
                duration=video.duration,
                rate=video.rate,
                width=video.width,
                height=video.height,
                audio=video.audio,
                **texts_between(library, video.id, one.start, end),
            )
        )
    return hits


def replace_paths_by_names(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with names instead of paths, because clients on other machines must not see the paths.

    Editors find the files again by their names. Videos that share a name get a folder named after their id.
    """
    first: dict[str, int] = {}
    renamed = []
    for hit in hits:
        name = hit.name.lstrip("/")
        alone = first.setdefault(name, hit.video_id) == hit.video_id
        renamed.append(replace(hit, path=Path("/", name) if alone else Path("/", str(hit.video_id), name)))
    return renamed


def _pictures(library: Library, kind: str, hits: Sequence[Hit]) -> Any:
    paths = {hit.video_id: hit.path for hit in hits}

    def picture(hit: Hit) -> bytes | None:
        try:
            return library.thumbnail(replace(hit, path=paths[hit.video_id]))
        except MomentseekError:
            return None

    return picture if kind == "html" else None


def export_attachment(written: ExportText, kind: str, title: str) -> Response:
    """The response that saves an export, named after its title."""
    stem = re.sub(r"[^\w -]+", "", clean_text(title)).strip()[:60] or "moments"
    return attachment(written.text.encode("utf-8", "replace"), EXPORT_MEDIA_TYPES[kind], f"{stem}.{kind}")
