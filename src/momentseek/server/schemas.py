"""What requests and answers of several routes are made of: base models, ids, addresses, and videos."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from momentseek.library.source_file import is_elsewhere
from momentseek.library.video import Video
from momentseek.server.errors import hide_paths

API = "/api/v1"
VideoId = Annotated[int, InPath(ge=1, le=2**53, description="The video's id.", examples=[7])]
Seconds = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Level = Literal["strong", "fair", "weak"]


class StrictModel(BaseModel):
    """Parameters that clients send; a name that is not known is an error."""

    model_config = ConfigDict(extra="forbid")


class StrictBody(StrictModel):
    """A JSON body that clients send; values are not converted, so ``true`` is no number."""

    model_config = ConfigDict(strict=True)


class VideoOut(BaseModel):
    """A video of the library."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 7, "name": "kitchen.mp4", "duration": 60.0, "width": 1280, "height": 720, "rate": "25/1",
                "clips": 40, "cues": 12, "added": 1760000000.0, "mtime": 1750000000.0, "notes": [], "available": True,
                "thumbnail": "/api/v1/videos/7/thumbnail?t=6.0", "media": "/api/v1/videos/7/media",
            }
        }
    )  # fmt: skip
    id: int
    name: str
    duration: float = Field(description="Length in seconds.")
    width: int
    height: int
    rate: str = Field(description="Frames per second, as a fraction.")
    clips: int = Field(description="Number of clips.")
    cues: int = Field(description="Number of cues.")
    added: float = Field(description="When it was added, in seconds since 1970.")
    mtime: float = Field(description="When the file was last changed, in seconds since 1970.")
    notes: list[str] = Field(description="What was unusual about the file.")
    available: bool = Field(description="Whether the file can be read now and is the one that was added.")
    thumbnail: str
    media: str


def clean_text(value: str) -> str:
    r"""The text as valid Unicode, which JSON can carry, whatever bytes a file name was made of.

    >>> clean_text("caf\udce9")
    'caf?'
    """
    return value.encode("utf-8", "replace").decode()


def rate_text(rate: Fraction) -> str:
    """A frame rate as the text of a fraction.

    >>> rate_text(Fraction(30000, 1001)), rate_text(Fraction(25))
    ('30000/1001', '25/1')
    """
    return f"{rate.numerator}/{rate.denominator}"


def media_url(video: int) -> str:
    """The address of a video's bytes.

    >>> media_url(7)
    '/api/v1/videos/7/media'
    """
    return f"{API}/videos/{video}/media"


def thumbnail_url(video: int, time: float) -> str:
    """The address of a picture of a video at a time in seconds.

    >>> thumbnail_url(7, 4.54)
    '/api/v1/videos/7/thumbnail?t=4.5'
    """
    return f"{API}/videos/{video}/thumbnail?t={max(0.0, math.floor(time * 10) / 10):.1f}"


def moment_id(video: int, start: float, end: float) -> str:
    """The id of a moment: the video's id and the times, rounded to milliseconds; the same whatever query found it.

    >>> moment_id(7, 4.5, 9.0)
    '7:4.500-9.000'
    """
    return f"{video}:{start:.3f}-{end:.3f}"


def moment_url(id: str) -> str:
    """The address of a moment.

    >>> moment_url("7:4.500-9.000")
    '/api/v1/moments/7:4.500-9.000'
    """
    return f"{API}/moments/{id}"


def video_out(video: Video) -> VideoOut:
    """Convert a video to the API's answer; checks whether its file can be read."""
    return VideoOut(
        id=video.id,
        name=clean_text(video.name),
        duration=video.duration,
        width=video.width,
        height=video.height,
        rate=rate_text(video.rate),
        clips=video.clips,
        cues=video.cues,
        added=video.added,
        mtime=video.mtime_ns / 1e9,
        notes=[hide_paths(clean_text(note)) for note in video.notes],
        available=video.file.is_there() or is_elsewhere(video.path),
        thumbnail=thumbnail_url(video.id, video.duration / 10),
        media=media_url(video.id),
    )
