"""Routes for a video's bytes, clips cut from it, previews for browsers, and thumbnails."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field, model_validator
from starlette.responses import Response

from momentseek.api.library import Library
from momentseek.cluster.replicas.place import MAX_PICTURED_BYTES, source_file
from momentseek.core.pinned_file import PinnedFile
from momentseek.media.sandbox.calls import cut
from momentseek.search.hit import Hit
from momentseek.server.errors import BODY_ERRORS, ApiError, change_errors, error_responses, hide_paths
from momentseek.server.files import (
    OpenFile,
    OpenFileResponse,
    content_disposition,
    etag_matches,
    file_responses,
    video_media_type,
)
from momentseek.server.previews import PreviewState
from momentseek.server.schemas import API, Seconds, StrictBody, StrictModel, VideoId, clean_text
from momentseek.server.security.sessions import client_of
from momentseek.server.service import Service, ServiceParam, find_video

router = APIRouter(tags=["media"])
MAX_CLIP_SECONDS = 1800.0
"""Longest clip that clients may cut."""
MEDIA_RESPONSES = {
    **file_responses("The whole file.", "video/*", "audio/*", "application/octet-stream", ranges=True),
    **error_responses(404, 409, 416),
}
PREVIEW_RESPONSES = {**file_responses("The whole preview.", "video/mp4", ranges=True), **error_responses(404, 416)}
CLIP_RESPONSES = {**file_responses("The clip.", "video/mp4"), **error_responses(404, 409), **BODY_ERRORS}
PICTURE_RESPONSES = {
    **file_responses("The picture.", "image/webp"),
    304: {"description": "The client's copy is still good."},
    **error_responses(404, 409),
}
THUMBNAIL_WIDTHS = (160, 320, 640, 960)
"""The available widths, in pixels; other widths are rounded up, so that few versions of a picture are cached."""
CACHE_FOR_GOOD = "private, max-age=31536000, immutable"


class ClipIn(StrictBody):
    """Which part of a video to cut."""

    start: Seconds
    end: Seconds
    exact: Annotated[
        bool, Field(description="Encode again, for frame-accurate cuts; otherwise copy from the key frame before.")
    ] = True
    pad: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False, description="Seconds to add on each side.")] = 0.0

    @model_validator(mode="after")
    def _check_order(self) -> ClipIn:
        if not self.start < self.end:
            raise ValueError("the start must be before the end")
        if self.end - self.start > MAX_CLIP_SECONDS:
            raise ValueError(f"a clip has at most {MAX_CLIP_SECONDS:g} seconds")
        return self


@router.head(
    "/videos/{id}/media",
    name="media_head",
    summary="The size of the video",
    description="The headers of the file without its bytes.",
    responses=MEDIA_RESPONSES,
    response_class=Response,
)
@router.get("/videos/{id}/media", summary="The video's bytes", responses=MEDIA_RESPONSES, response_class=Response)
async def media(request: Request, service: ServiceParam, id: VideoId) -> Response:
    """The file as it is, whole or in part (`Range`, `If-Range`, `If-None-Match`)."""

    def read(library: Library) -> tuple[OpenFile, str, str]:
        video = find_video(library, id)
        return OpenFile(source_file(video)), video_media_type(video.path), video.name

    return await send_video(service, client_of(request.scope), read)


async def send_video(service: Service, client: str, read: Callable[[Library], tuple[OpenFile, str, str]]) -> Response:
    """Send the file that ``read`` opens, with its media type and name; 503 if too many are being sent."""
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
    return OpenFileResponse(file, kind, headers, release)


@router.post("/videos/{id}/clip", summary="Cut a clip", responses=CLIP_RESPONSES, response_class=Response)
async def clip(service: ServiceParam, id: VideoId, given: ClipIn) -> Response:
    """Cut a part of the video into an MP4 file."""

    def make(library: Library) -> tuple[tempfile.TemporaryDirectory[str], OpenFile, str]:
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
            return folder, OpenFile(PinnedFile(target.resolve())), f"{stem} {given.start:.2f}-{given.end:.2f}.mp4"
        except BaseException:
            folder.cleanup()
            raise

    folder, file, name = await service.cutters.run(make)
    headers = {"Content-Disposition": content_disposition(name), "Cache-Control": "no-store"}
    return OpenFileResponse(file, "video/mp4", headers, folder.cleanup)


class PreviewOut(BaseModel):
    """The state of a preview."""

    state: PreviewState
    progress: float = Field(ge=0, le=1, description="Share of the work that is done.")
    error: str = Field(description="Why it failed; empty if it did not.")
    preview: str = Field(description="The address of the preview, once it is ready.")


@router.post("/videos/{id}/preview", summary="Make a preview", responses=change_errors(404, 409))
async def make_preview(service: ServiceParam, id: VideoId) -> PreviewOut:
    """Request a copy that browsers can play (H.264 and AAC, at most 540 lines), for a video that yours cannot.

    Repeat the request every second until it is ready: the work stops ten seconds after the last request.
    """
    video = await service.video(id)
    # 404 for a missing file, 409 for another one
    await service.readers.run(lambda _: OpenFile(source_file(video)).close())
    job = service.previews.ask(video)
    return PreviewOut(
        state=job.state,
        progress=job.progress,
        error=hide_paths(clean_text(job.error)),
        preview=f"{API}/videos/{id}/preview",
    )


@router.head(
    "/videos/{id}/preview",
    name="preview_head",
    summary="The size of the preview",
    description="The headers of the preview without its bytes.",
    responses=PREVIEW_RESPONSES,
    response_class=Response,
)
@router.get("/videos/{id}/preview", summary="The preview", responses=PREVIEW_RESPONSES, response_class=Response)
async def preview(request: Request, service: ServiceParam, id: VideoId) -> Response:
    """The preview, whole or in part (`Range`, `If-Range`, `If-None-Match`), once it has been made."""

    def read(library: Library) -> tuple[OpenFile, str, str]:
        video = find_video(library, id)
        path = service.previews.find(video)
        if path is None:
            raise ApiError(404, "there is no preview of this video yet; ask for one (POST)", code="no_preview")
        return OpenFile(PinnedFile(path.resolve())), "video/mp4", f"{Path(video.name).stem} (preview).mp4"

    return await send_video(service, client_of(request.scope), read)


class PictureIn(StrictModel):
    """The time and width of a picture."""

    t: Annotated[Seconds, Query(description="The time in the video in seconds, rounded to a tenth.")] = 0.0
    w: Annotated[int, Query(ge=16, le=THUMBNAIL_WIDTHS[-1], description="The width in pixels, rounded up.")] = 320


@router.get("/videos/{id}/thumbnail", summary="A thumbnail", responses=PICTURE_RESPONSES, response_class=Response)
async def thumbnail(
    request: Request, service: ServiceParam, id: VideoId, given: Annotated[PictureIn, Query()]
) -> Response:
    """The frame at a time, as WebP. Ids of videos are never reused, so a picture never changes."""
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
        hit = Hit(video_id=found.id, path=found.path, name=found.name, start=time, end=time, peak=time)
        return library.thumbnail(hit, width)

    return Response(await service.pictures.run(make), media_type="image/webp", headers=headers)
