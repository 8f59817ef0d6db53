"""Small pictures of moments."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from momentseek.api import Library
from momentseek.search import Hit
from momentseek.server.answers import Seconds, Strict, VideoId
from momentseek.server.errors import documented
from momentseek.server.files import OpenFile
from momentseek.server.ranges import matches
from momentseek.server.service import Serving, video_of

router = APIRouter(tags=["media"])
WIDTHS = (160, 320, 640, 960)
"""Widths that are made; others get the next larger one, so that few are kept per picture."""
FOREVER = "private, max-age=31536000, immutable"
_PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The picture.", "content": {"image/webp": {"schema": {"type": "string", "format": "binary"}}}},
    304: {"description": "The client's copy is still good."},
    **documented(404, 409),
}


class PictureIn(Strict):
    """Which picture."""

    t: Annotated[Seconds, Query(description="The time in the video; rounded to a tenth of a second.")] = 0.0
    w: Annotated[int, Query(ge=16, le=WIDTHS[-1], description="The width; made a little larger.")] = 320


@router.get("/videos/{id}/thumbnail", summary="A picture", responses=_PICTURE, response_class=Response)
async def thumbnail(request: Request, service: Serving, id: VideoId, given: Annotated[PictureIn, Query()]) -> Response:
    """The frame shown at a time, as WebP. An id is never used again, so a picture never changes."""
    width = next(w for w in WIDTHS if w >= given.w)
    video = await service.video(id)
    time = min(round(given.t, 1), video.duration)
    digest = hashlib.blake2b(f"{video.hash}:{time:.1f}:{width}:1".encode(), digest_size=12).hexdigest()
    headers = {"ETag": f'"{digest}"', "Cache-Control": FOREVER}
    if matches(request.headers.get("if-none-match"), headers["ETag"]):
        return Response(status_code=304, headers=headers)

    def make(library: Library) -> bytes:
        found = video_of(library, id)
        OpenFile(found.path).close()  # 404 for a missing file
        hit = Hit(1, found.id, found.path, found.name, time, time, 0.0, "weak", time, found.duration)
        return library.thumbnail(hit, width)

    return Response(await service.pictures.run(make), media_type="image/webp", headers=headers)
