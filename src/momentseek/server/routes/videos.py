"""The library's videos and what is said in them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from momentseek.api import Library
from momentseek.server.answers import Strict, VideoId, VideoOut, text, video_out
from momentseek.server.errors import documented
from momentseek.server.service import Serving, video_of

router = APIRouter(tags=["videos"])


class ListIn(Strict):
    """Which of the videos."""

    offset: Annotated[int, Query(ge=0, le=2**53)] = 0
    limit: Annotated[int, Query(ge=1, le=1000)] = 100
    name: Annotated[str, Query(max_length=200, description="Only those whose name has this in it.")] = ""


class VideosOut(BaseModel):
    """One page of the videos."""

    total: int
    videos: list[VideoOut]


class VideoDetails(VideoOut):
    """A video, with its cuts."""

    shots: list[float]


class CueOut(BaseModel):
    """Words and when they are said."""

    start: float
    end: float
    text: str
    language: str | None


class CuesOut(BaseModel):
    """All that is said in a video, in order."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"cues": [{"start": 1.0, "end": 2.5, "text": "Anybody home?", "language": "en"}]}}
    )
    cues: list[CueOut]


@router.get("/videos", summary="List videos")
async def videos(service: Serving, given: Annotated[ListIn, Query()]) -> VideosOut:
    """The videos by name, a page at a time."""

    def read(library: Library) -> VideosOut:
        total, page = library.catalog.page_of_videos(text(given.name), given.limit, given.offset)
        return VideosOut(total=total, videos=[video_out(video) for video in page])

    return await service.readers.run(read)


@router.get("/videos/{id}", summary="One video", responses=documented(404))
async def video(service: Serving, id: VideoId) -> VideoDetails:
    """What is known of a video."""

    def read(library: Library) -> VideoDetails:
        found = video_of(library, id)
        return VideoDetails(**video_out(found).model_dump(), shots=list(found.shots))

    return await service.readers.run(read)


@router.get("/videos/{id}/cues", summary="What is said", responses=documented(404))
async def cues(service: Serving, id: VideoId) -> CuesOut:
    """The transcript of a video: its subtitles, in order."""

    def read(library: Library) -> CuesOut:
        video_of(library, id)
        found = library.catalog.cues(id)
        return CuesOut(cues=[CueOut(start=c.start, end=c.end, text=text(c.text), language=c.language) for c in found])

    return await service.readers.run(read)
