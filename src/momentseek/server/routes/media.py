"""A video's bytes, and clips cut from it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Field, model_validator
from starlette.responses import Response

from momentseek.api import Library
from momentseek.library.source_file import source_file
from momentseek.plain_file import PlainFile
from momentseek.server.errors import BODY_ERRORS, ApiError, error_responses
from momentseek.server.files import OpenFile, RangeFileResponse, content_disposition, video_media_type
from momentseek.server.schemas import Seconds, StrictBody, VideoId
from momentseek.server.security.clients import client_of
from momentseek.server.service import Service, ServiceParam, find_video

router = APIRouter(tags=["media"])
MAX_CLIP_SECONDS = 1800.0
"""The longest clip that is cut."""
_BINARY_CONTENT: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_MEDIA_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The whole file.",
        "content": {"video/*": _BINARY_CONTENT, "application/octet-stream": _BINARY_CONTENT},
    },
    206: {
        "description": "The range asked for.",
        "content": {"video/*": _BINARY_CONTENT, "application/octet-stream": _BINARY_CONTENT},
    },
    304: {"description": "The client's copy is still good."},
    **error_responses(404, 409, 416),
}


class ClipIn(StrictBody):
    """Which part of a video to cut."""

    start: Seconds
    end: Seconds
    exact: Annotated[bool, Field(description="Encode again, exact to the frame; otherwise copy from a key frame.")] = (
        True
    )
    pad: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False, description="Seconds to add on each side.")] = 0.0

    @model_validator(mode="after")
    def _check_order(self) -> ClipIn:
        if not self.start < self.end:
            raise ValueError("the start must be before the end")
        if self.end - self.start > MAX_CLIP_SECONDS:
            raise ValueError(f"a clip has at most {MAX_CLIP_SECONDS:g} seconds")
        return self


@router.get("/videos/{id}/media", summary="The video's bytes", responses=_MEDIA_RESPONSES, response_class=Response)
async def media(request: Request, service: ServiceParam, id: VideoId) -> Response:
    """The file as it is, whole or in part (`Range`, `If-Range`, `If-None-Match`)."""
    return await _send(service, id, client_of(request.scope))


@router.head("/videos/{id}/media", summary="The size of the video", responses=_MEDIA_RESPONSES, response_class=Response)
async def media_head(request: Request, service: ServiceParam, id: VideoId) -> Response:
    """The headers of the file without its bytes."""
    return await _send(service, id, client_of(request.scope))


async def _send(service: Service, id: int, client: str) -> Response:
    def read(library: Library) -> tuple[OpenFile, str, str]:
        video = find_video(library, id)
        return OpenFile(source_file(video)), video_media_type(video.path), video.name

    return await send_video(service, client, read)


async def send_video(service: Service, client: str, read: Callable[[Library], tuple[OpenFile, str, str]]) -> Response:
    """Send the file that ``read`` opens, of its media type and name, unless too many are being sent."""
    limits, streams = service.settings.limits, service.streams
    if streams.total() >= limits.streams or streams[client] >= limits.streams_per_client:
        raise ApiError(503, "too many videos are being sent; try again in a moment", headers={"Retry-After": "2"})
    streams[client] += 1

    def release() -> None:
        streams[client] -= 1
        if not streams[client]:
            del streams[client]

    try:
        file, kind, name = await service.readers.run(read)
    except BaseException:
        release()
        raise
    headers = {"Cache-Control": "private, no-cache", "Content-Disposition": content_disposition(name, attachment=False)}
    return RangeFileResponse(file, kind, headers, release)


_CLIP_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The clip.", "content": {"video/mp4": _BINARY_CONTENT}},
    **error_responses(404, 409),
    **BODY_ERRORS,
}


@router.post("/videos/{id}/clip", summary="Cut a clip", responses=_CLIP_RESPONSES, response_class=Response)
async def clip(service: ServiceParam, id: VideoId, given: ClipIn) -> Response:
    """A part of the video as an MP4 file of its own."""

    def make(library: Library) -> tuple[tempfile.TemporaryDirectory[str], OpenFile, str]:
        from momentseek.media.sandbox import cut

        video = find_video(library, id)
        source = source_file(video)
        OpenFile(source).close()  # 404 for a missing file, 409 for another one
        if given.start >= video.duration:
            raise ApiError(422, f"the video is {video.duration:g} s long; the start must be before its end")
        shown = min(video.duration, given.end + given.pad) - max(0.0, given.start - given.pad)
        if shown * video.rate < 1 - 1e-6:
            raise ApiError(422, f"a clip has at least one frame ({float(1 / video.rate):.3f} s); choose a later end")
        folder = tempfile.TemporaryDirectory(prefix="momentseek-")
        try:
            target = Path(folder.name) / "clip.mp4"
            cut(source, given.start, given.end, target, exact=given.exact, pad=given.pad)
            stem = Path(video.name).stem
            return folder, OpenFile(PlainFile(target.resolve())), f"{stem} {given.start:.2f}-{given.end:.2f}.mp4"
        except BaseException:
            folder.cleanup()
            raise

    folder, file, name = await service.cutters.run(make)
    headers = {"Content-Disposition": content_disposition(name), "Cache-Control": "no-store"}
    return RangeFileResponse(file, "video/mp4", headers, folder.cleanup)
