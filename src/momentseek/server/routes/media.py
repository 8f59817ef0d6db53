"""A video's bytes, and clips cut out of it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field, model_validator
from starlette.responses import Response

from momentseek.api import Library
from momentseek.server.answers import Body, Seconds, VideoId
from momentseek.server.errors import CHANGING, ApiError, documented
from momentseek.server.files import FileAnswer, OpenFile, disposition, kind_of
from momentseek.server.service import Service, Serving, video_of

router = APIRouter(tags=["media"])
LONGEST = 1800.0
"""Seconds of a clip."""
_BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_WHOLE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The whole file.", "content": {"video/*": _BYTES, "application/octet-stream": _BYTES}},
    206: {"description": "The range asked for.", "content": {"video/*": _BYTES, "application/octet-stream": _BYTES}},
    304: {"description": "The client's copy is still good."},
    **documented(404, 416),
}


class ClipIn(Body):
    """Which part to cut."""

    start: Seconds
    end: Seconds
    exact: Annotated[bool, Field(description="Encode anew, right to the frame; else copy from a key frame.")] = True
    pad: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False, description="Seconds more on each side.")] = 0.0

    @model_validator(mode="after")
    def _ordered(self) -> ClipIn:
        if not self.start < self.end:
            raise ValueError("the start must lie before the end")
        if self.end - self.start > LONGEST:
            raise ValueError(f"a clip has at most {LONGEST:g} seconds")
        return self


@router.get("/videos/{id}/media", summary="The video's bytes", responses=_WHOLE, response_class=Response)
async def media(service: Serving, id: VideoId) -> Response:
    """The file as it is, whole or in part (`Range`, `If-Range`, `If-None-Match`)."""
    return await _send(service, id)


@router.head("/videos/{id}/media", summary="The size of the video", responses=_WHOLE, response_class=Response)
async def media_head(service: Serving, id: VideoId) -> Response:
    """The headers of the file without its bytes."""
    return await _send(service, id)


async def _send(service: Service, id: int) -> Response:
    if service.streams >= service.settings.limits.streams:
        raise ApiError(503, "too many videos are being sent; try again in a moment", headers={"Retry-After": "2"})
    service.streams += 1

    def ended() -> None:
        service.streams -= 1

    def read(library: Library) -> tuple[OpenFile, str, str]:
        video = video_of(library, id)
        return OpenFile(video.path), kind_of(video.path), video.name

    try:
        file, kind, name = await service.readers.run(read)
    except BaseException:
        ended()
        raise
    headers = {"Cache-Control": "private, no-cache", "Content-Disposition": disposition(name, attachment=False)}
    return FileAnswer(file, kind, headers, ended)


_CLIP: dict[int | str, dict[str, Any]] = {
    200: {"description": "The clip.", "content": {"video/mp4": _BYTES}},
    **documented(404, 409),
    **CHANGING,
}


@router.post("/videos/{id}/clip", summary="Cut a clip", responses=_CLIP, response_class=Response)
async def clip(service: Serving, id: VideoId, given: ClipIn) -> Response:
    """A part of the video as an MP4 file of its own."""

    def make(library: Library) -> tuple[tempfile.TemporaryDirectory[str], OpenFile, str]:
        from momentseek.media.cut import cut

        video = video_of(library, id)
        OpenFile(video.path).close()  # 404 for a missing file
        if given.start >= video.duration:
            raise ApiError(422, f"the video has {video.duration:g} s; the start must lie in it")
        shown = min(video.duration, given.end + given.pad) - max(0.0, given.start - given.pad)
        if shown * video.rate < 1 - 1e-6:
            raise ApiError(422, f"a clip has at least one frame ({float(1 / video.rate):.3f} s); choose a later end")
        room = tempfile.TemporaryDirectory(prefix="momentseek-")
        try:
            target = Path(room.name) / "clip.mp4"
            cut(video.path, given.start, given.end, target, exact=given.exact, pad=given.pad)
            stem = Path(video.name).stem
            return room, OpenFile(target), f"{stem} {given.start:.2f}-{given.end:.2f}.mp4"
        except BaseException:
            room.cleanup()
            raise

    room, file, name = await service.cutters.run(make)
    headers = {"Content-Disposition": disposition(name), "Cache-Control": "no-store"}
    return FileAnswer(file, "video/mp4", headers, room.cleanup)
