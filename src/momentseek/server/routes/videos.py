"""The library's videos and their cues."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.server.errors import error_responses
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


class CueOut(BaseModel):
    """A cue: a line that is said, with its times in seconds."""

    start: float
    end: float
    text: str
    language: str | None


class CuesOut(BaseModel):
    """All cues of a video, in order."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"cues": [{"start": 1.0, "end": 2.5, "text": "Anybody home?", "language": "en"}]}}
    )
    cues: list[CueOut]


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


@router.get("/videos/{id}/cues", summary="The cues of a video", responses=error_responses(404))
async def cues(service: ServiceParam, id: VideoId) -> CuesOut:
    """The transcript of a video: its subtitles, in order."""

    def read(library: Library) -> CuesOut:
        find_video(library, id)
        found = library.catalog.cues(id)
        return CuesOut(
            cues=[CueOut(start=c.start, end=c.end, text=clean_text(c.text), language=c.language) for c in found]
        )

    return await service.readers.run(read)
