"""The library's videos, and what is written in them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.library.descriptions import description
from momentseek.library.readings import reading
from momentseek.server.errors import BODY_ERRORS, error_responses
from momentseek.server.hits import DescribedSceneOut, WrittenLineOut, caption_out, line_out
from momentseek.server.schemas import StrictModel, VideoId, VideoOut, clean_text, video_out
from momentseek.server.service import ServiceParam, find_video

router = APIRouter(tags=["videos"])


class VideoListIn(StrictModel):
    """Which of the videos to list."""

    offset: Annotated[int, Query(ge=0, le=2**53)] = 0
    limit: Annotated[int, Query(ge=1, le=1000)] = 100
    name: Annotated[str, Query(max_length=200, description="Only videos whose name contains this.")] = ""


class VideosOut(BaseModel):
    """One page of the videos."""

    total: int
    videos: list[VideoOut]


class VideoDetailsOut(VideoOut):
    """A video with its cuts."""

    shots: list[float] = Field(description="Times of the cuts in seconds.")


class LinesOut(BaseModel):
    """What a machine read in the pictures of a video, in order."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "lines": [
                    {"start": 1.0, "end": 5.0, "text": "Way out", "marks": [], "at": 3.0, "box": [0.1, 0.2, 0.3, 0.05]}
                ],
                "read_by": "ppocr-small",
            }
        }
    )
    lines: list[WrittenLineOut]
    read_by: str | None = Field(description="What read them; null if nobody has looked, or not to the end.")


class DescribedOut(BaseModel):
    """What a model says of the scenes of a video, in order."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "scenes": [
                    {"start": 0.0, "end": 8.0, "text": "A dog jumps.", "marks": [], "described_by": "mmt 1f2e3d4c"}
                ],
                "described_by": "mmt 1f2e3d4c",
            }
        }
    )
    scenes: list[DescribedSceneOut]
    described_by: str | None = Field(description="The model; null if none was asked.")


@router.get("/videos", summary="List videos")
async def videos(service: ServiceParam, given: Annotated[VideoListIn, Query()]) -> VideosOut:
    """One page of the videos, sorted by name."""

    def read(library: Library) -> VideosOut:
        total, page = library.catalog.page_of_videos(clean_text(given.name), given.limit, given.offset)
        return VideosOut(total=total, videos=[video_out(video) for video in page])

    return await service.readers.run(read)


@router.get("/videos/{id}", summary="One video", responses=error_responses(404))
async def video(service: ServiceParam, id: VideoId) -> VideoDetailsOut:
    """A video and its cuts."""

    def read(library: Library) -> VideoDetailsOut:
        found = find_video(library, id)
        return VideoDetailsOut(**video_out(found).model_dump(), shots=list(found.shots))

    return await service.readers.run(read)


@router.delete("/videos/{id}", summary="Remove a video", responses={**error_responses(404, 409), **BODY_ERRORS})
async def remove_video(service: ServiceParam, id: VideoId) -> VideoOut:
    """Take a video out of the library; its file stays where it is. Refused unless the server allows changes."""
    service.check_changes()

    def remove(library: Library) -> VideoOut:
        found = find_video(library, id)
        removed = video_out(found)
        library.remove([found.path])
        return removed

    return await service.readers.run(remove)


@router.get("/videos/{id}/described", summary="What a model says of a video", responses=error_responses(404))
async def scenes_of_video(service: ServiceParam, id: VideoId) -> DescribedOut:
    """What a model says of the scenes of a video, as far as they were described; never what is said in it."""

    def read(library: Library) -> DescribedOut:
        find_video(library, id)
        found = description(library.catalog.of(id), id)
        if found is None or found.problem:
            return DescribedOut(scenes=[], described_by=None)
        scenes = [caption_out(caption) for caption in found.captions]
        return DescribedOut(scenes=scenes, described_by=clean_text(found.model))

    return await service.readers.run(read)


@router.get("/videos/{id}/lines", summary="What is written in a video", responses=error_responses(404))
async def lines(service: ServiceParam, id: VideoId) -> LinesOut:
    """What a machine read in the pictures of a video, with times and places; never what is said."""

    def read(library: Library) -> LinesOut:
        find_video(library, id)
        found = reading(library.catalog.of(id), id)
        if found is None or found.problem or not found.whole:
            return LinesOut(lines=[], read_by=None)
        return LinesOut(lines=[line_out(line) for line in found.lines], read_by=clean_text(found.reader))

    return await service.readers.run(read)
