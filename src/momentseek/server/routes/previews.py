"""Previews of videos that a browser cannot play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from momentseek.api import Library
from momentseek.library.source_file import source_file
from momentseek.plain_file import PlainFile
from momentseek.server.errors import BODY_ERRORS, ApiError, error_responses, hide_paths
from momentseek.server.files import OpenFile
from momentseek.server.previews import PreviewState
from momentseek.server.routes.media import send_video
from momentseek.server.schemas import API, VideoId, clean_text
from momentseek.server.security.clients import client_of
from momentseek.server.service import Service, ServiceParam, find_video

router = APIRouter(tags=["media"])
_MP4_CONTENT: dict[str, Any] = {"video/mp4": {"schema": {"type": "string", "format": "binary"}}}
_PREVIEW_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The whole preview.", "content": _MP4_CONTENT},
    206: {"description": "The range asked for.", "content": _MP4_CONTENT},
    304: {"description": "The client's copy is still good."},
    **error_responses(404, 416),
}


class PreviewOut(BaseModel):
    """How far a preview is."""

    state: PreviewState
    progress: float = Field(ge=0, le=1, description="The share that is done.")
    error: str = Field(description="Why there will be none; empty unless it failed.")
    preview: str = Field(description="Where it is once it is ready.")


@router.post("/videos/{id}/preview", summary="Make a preview", responses={**error_responses(404, 409), **BODY_ERRORS})
async def make_preview(service: ServiceParam, id: VideoId) -> PreviewOut:
    """Ask for a copy that browsers play (H.264 and AAC, 540 lines at most), for a video of a kind that yours does not.

    Ask again every second until it is ready: making it stops ten seconds after the last one who asked.
    """
    video = await service.video(id)
    await service.readers.run(
        lambda _: OpenFile(source_file(video)).close()
    )  # 404 for a missing file, 409 for another one
    job = service.previews.ask(video)
    return PreviewOut(
        state=job.state,
        progress=job.progress,
        error=hide_paths(clean_text(job.error)),
        preview=f"{API}/videos/{id}/preview",
    )


@router.get("/videos/{id}/preview", summary="The preview", responses=_PREVIEW_RESPONSES, response_class=Response)
async def preview(request: Request, service: ServiceParam, id: VideoId) -> Response:
    """The preview, whole or in part (`Range`, `If-Range`, `If-None-Match`), once it has been made."""
    return await _send(service, id, client_of(request.scope))


@router.head("/videos/{id}/preview", summary="Its size", responses=_PREVIEW_RESPONSES, response_class=Response)
async def preview_head(request: Request, service: ServiceParam, id: VideoId) -> Response:
    """The headers of the preview without its bytes."""
    return await _send(service, id, client_of(request.scope))


async def _send(service: Service, id: int, client: str) -> Response:
    def read(library: Library) -> tuple[OpenFile, str, str]:
        video = find_video(library, id)
        path = service.previews.find(video)
        if path is None:
            raise ApiError(404, "there is no preview of this video yet; ask for one (POST)", code="no_preview")
        return OpenFile(PlainFile(path.resolve())), "video/mp4", f"{Path(video.name).stem} (preview).mp4"

    return await send_video(service, client, read)
