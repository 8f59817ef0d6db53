"""A moment by its id: what a search found can be kept, shared and looked up again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.server.answers import SaidOut, fraction, media_url, moment_url, text, thumbnail_url
from momentseek.server.errors import documented
from momentseek.server.moments import PATTERN, ROUNDING, moment_id, parse, said_in, unknown
from momentseek.server.service import Serving, video_of

router = APIRouter(tags=["videos"])
MomentId = Annotated[str, InPath(pattern=PATTERN, description="A hit's `moment`.", examples=["7:4.500-9.000"])]


class MomentOut(BaseModel):
    """A stretch of a video."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "7:4.500-9.000", "url": "/api/v1/moments/7:4.500-9.000", "video_id": 7, "name": "kitchen.mp4",
                "start": 4.5, "end": 9.0, "duration": 60.0, "rate": "25/1",
                "said": [{"start": 4.0, "end": 6.0, "text": "Where is the dog?", "marks": []}],
                "thumbnail": "/api/v1/videos/7/thumbnail?t=6.7", "media": "/api/v1/videos/7/media#t=4.500,9.000",
                "page": "/#v=7&t=4.500,9.000",
            }
        }
    )  # fmt: skip
    id: str
    url: str
    video_id: int
    name: str = Field(description="The video as people call it.")
    start: float = Field(description="In seconds.")
    end: float
    duration: float = Field(description="Of the whole video.")
    rate: str = Field(description="Frames per second of the video, as a fraction.")
    said: list[SaidOut]
    thumbnail: str = Field(description="Of its middle.")
    media: str = Field(description="The video, with the moment as its fragment: a player plays just that.")
    page: str = Field(description="Where the web page shows it.")


@router.get("/moments/{id}", summary="One moment", responses=documented(404))
async def moment(service: Serving, id: MomentId) -> MomentOut:
    """A moment that a search named, or any other stretch of a video."""
    number, start, end = parse(id)

    def read(library: Library) -> MomentOut:
        video = video_of(library, number)
        if start >= video.duration or end > video.duration + ROUNDING:
            raise unknown(id)
        cues = said_in(library.catalog, video.id, start, end)
        name, fragment = moment_id(number, start, end), f"{start:.3f},{end:.3f}"
        return MomentOut(
            id=name,
            url=moment_url(name),
            video_id=video.id,
            name=text(video.name),
            start=start,
            end=min(end, video.duration),
            duration=video.duration,
            rate=fraction(video.rate),
            said=[SaidOut(start=cue.start, end=cue.end, text=text(cue.text), marks=[]) for cue in cues],
            thumbnail=thumbnail_url(video.id, (start + end) / 2),
            media=f"{media_url(video.id)}#t={fragment}",
            page=f"/#v={video.id}&t={fragment}",
        )

    return await service.readers.run(read)
