"""Thumbnails: small pictures of moments."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from momentseek.api import Library
from momentseek.library.source_file import MAX_PICTURED_BYTES, source_file
from momentseek.search import Hit
from momentseek.server.errors import error_responses
from momentseek.server.files import OpenFile
from momentseek.server.ranges import etag_matches
from momentseek.server.schemas import Seconds, StrictModel, VideoId
from momentseek.server.service import ServiceParam, find_video

router = APIRouter(tags=["media"])
THUMBNAIL_WIDTHS = (160, 320, 640, 960)
"""Widths that are made, in pixels; others are rounded up, so that few are cached per picture."""
CACHE_FOR_GOOD = "private, max-age=31536000, immutable"
_PICTURE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The picture.", "content": {"image/webp": {"schema": {"type": "string", "format": "binary"}}}},
    304: {"description": "The client's copy is still good."},
    **error_responses(404, 409),
}


class PictureIn(StrictModel):
    """The time and width of a picture."""

    t: Annotated[Seconds, Query(description="The time in the video in seconds, rounded to a tenth.")] = 0.0
    w: Annotated[int, Query(ge=16, le=THUMBNAIL_WIDTHS[-1], description="The width in pixels, rounded up.")] = 320


@router.get("/videos/{id}/thumbnail", summary="A picture", responses=_PICTURE_RESPONSES, response_class=Response)
async def thumbnail(
    request: Request, service: ServiceParam, id: VideoId, given: Annotated[PictureIn, Query()]
) -> Response:
    """The frame shown at a time, as WebP. A video's id is never used again, so a picture never changes."""
    width = next(w for w in THUMBNAIL_WIDTHS if w >= given.w)
    video = await service.video(id)
    time = min(round(given.t, 1), video.duration)
    digest = hashlib.blake2b(f"{video.hash}:{time:.1f}:{width}:1".encode(), digest_size=12).hexdigest()
    headers = {"ETag": f'"{digest}"', "Cache-Control": CACHE_FOR_GOOD}
    if etag_matches(request.headers.get("if-none-match"), headers["ETag"]):
        return Response(status_code=304, headers=headers)

    def make(library: Library) -> bytes:
        found = find_video(library, id)
        OpenFile(source_file(found, MAX_PICTURED_BYTES)).close()  # 404 for a missing file, 409 for another one
        hit = Hit(1, found.id, found.path, found.name, time, time, 0.0, "weak", time, found.duration)
        return library.thumbnail(hit, width)

    return Response(await service.pictures.run(make), media_type="image/webp", headers=headers)
