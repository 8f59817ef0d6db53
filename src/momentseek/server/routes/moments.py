"""Moments by id, as `7:4.500-9.000`: what a search found can be saved, shared and looked up again."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.library.descriptions import captions_between
from momentseek.library.readings import lines_between
from momentseek.server.errors import ApiError, error_responses
from momentseek.server.hits import MAX_HIT_LINES, DescribedSceneOut, SaidCueOut, WrittenLineOut, caption_out, line_out
from momentseek.server.schemas import clean_text, media_url, moment_id, moment_url, rate_text, thumbnail_url
from momentseek.server.service import ServiceParam, find_video

router = APIRouter(tags=["videos"])
MOMENT_ID_PATTERN = r"^([1-9][0-9]{0,14}):([0-9]{1,7}\.[0-9]{3})-([0-9]{1,7}\.[0-9]{3})$"
ROUNDING_SECONDS = 0.001
"""How far, through rounding, the end in an id may lie after the end of the video."""
MomentId = Annotated[
    str, InPath(pattern=MOMENT_ID_PATTERN, description="A hit's `moment`.", examples=["7:4.500-9.000"])
]


class MomentOut(BaseModel):
    """A moment: a video with a start and an end."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "7:4.500-9.000", "url": "/api/v1/moments/7:4.500-9.000", "video_id": 7, "name": "kitchen.mp4",
                "start": 4.5, "end": 9.0, "duration": 60.0, "rate": "25/1",
                "said": [{"start": 4.0, "end": 6.0, "text": "Where is the dog?", "marks": []}],
                "written": [], "described": [], "thumbnail": "/api/v1/videos/7/thumbnail?t=6.7",
                "media": "/api/v1/videos/7/media#t=4.500,9.000",
                "page": "/#v=7&t=4.500,9.000",
            }
        }
    )  # fmt: skip
    id: str
    url: str
    video_id: int
    name: str = Field(description="The name of the video.")
    start: float = Field(description="Seconds from the beginning of the video.")
    end: float
    duration: float = Field(description="Length of the whole video in seconds.")
    rate: str = Field(description="Frames per second of the video, as a fraction.")
    said: list[SaidCueOut]
    written: list[WrittenLineOut] = Field(description="What a machine read in the picture.")
    described: list[DescribedSceneOut] = Field(description="What a model says of the scenes.")
    thumbnail: str = Field(description="A picture of the middle of the moment.")
    media: str = Field(description="The video with the moment as its fragment, so that a player plays just that.")
    page: str = Field(description="The address of the web page that shows it.")


@router.get("/moments/{id}", summary="One moment", responses=error_responses(404))
async def moment(service: ServiceParam, id: MomentId) -> MomentOut:
    """A moment that a search gave, or any other part of a video."""
    number, start, end = parse_moment_id(id)

    def read(library: Library) -> MomentOut:
        video = find_video(library, number)
        if start >= video.duration or end > video.duration + ROUNDING_SECONDS:
            raise no_such_moment(id)
        cues = library.catalog.cues_between(video.id, start, end)
        name, fragment = moment_id(number, start, end), f"{start:.3f},{end:.3f}"
        return MomentOut(
            id=name,
            url=moment_url(name),
            video_id=video.id,
            name=clean_text(video.name),
            start=start,
            end=min(end, video.duration),
            duration=video.duration,
            rate=rate_text(video.rate),
            said=[SaidCueOut(start=cue.start, end=cue.end, text=clean_text(cue.text), marks=[]) for cue in cues],
            written=[
                line_out(o) for o in lines_between(library.catalog.of(video.id), video.id, start, end)[:MAX_HIT_LINES]
            ],
            described=[
                caption_out(o)
                for o in captions_between(library.catalog.of(video.id), video.id, start, end)[:MAX_HIT_LINES]
            ],
            thumbnail=thumbnail_url(video.id, (start + end) / 2),
            media=f"{media_url(video.id)}#t={fragment}",
            page=f"/#v={video.id}&t={fragment}",
        )

    return await service.readers.run(read)


def parse_moment_id(id: str) -> tuple[int, float, float]:
    """Video id, start and end in seconds of a moment's id; 404 if it is malformed.

    >>> parse_moment_id("7:4.500-9.000")
    (7, 4.5, 9.0)
    """
    match = re.fullmatch(MOMENT_ID_PATTERN, id)
    if match is None or not float(match[2]) < float(match[3]):
        raise no_such_moment(id)
    return int(match[1]), float(match[2]), float(match[3])


def no_such_moment(id: str) -> ApiError:
    """The error that there is no such moment."""
    return ApiError(404, f"there is no moment {id[:60]}; a search gives the ids of moments, such as 7:4.500-9.000")
