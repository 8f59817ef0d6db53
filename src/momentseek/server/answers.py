"""The shapes of what several routes answer with."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from momentseek.library.video import Video
from momentseek.search.hit import Hit
from momentseek.server.moments import moment_id

API = "/api/v1"
VideoId = Annotated[int, InPath(ge=1, le=2**53, description="The video's id.", examples=[7])]
Seconds = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Level = Literal["strong", "fair", "weak"]


class Strict(BaseModel):
    """What clients send: unknown names are mistakes."""

    model_config = ConfigDict(extra="forbid")


class Body(Strict):
    """What clients send as JSON, which has types of its own: ``true`` is no number."""

    model_config = ConfigDict(strict=True)


class SaidOut(BaseModel):
    """A cue that overlaps a moment."""

    start: float
    end: float
    text: str
    marks: list[tuple[int, int]] = Field(description="Character ranges of the words that were found.")


class StandingOut(BaseModel):
    """How one stream saw a moment."""

    rank: int
    score: float


class RerankedOut(BaseModel):
    """How a model looked at a moment again."""

    model: str
    score: float = Field(description="The model's, by which moments are ranked.")
    first: StandingOut = Field(description="Where the moment's video stood before, among videos, and its fused score.")


class HitOut(BaseModel):
    """A moment that was found."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "rank": 1, "video_id": 7, "name": "kitchen.mp4", "start": 3.0, "end": 9.0, "peak": 4.5,
                "duration": 60.0, "rate": "25/1", "score": 0.032, "level": "strong",
                "said": [{"start": 4.0, "end": 6.0, "text": "Where is the dog?", "marks": [[13, 16]]}],
                "streams": {"vision": {"rank": 1, "score": 0.31}}, "also": [], "curve": [],
                "thumbnail": "/api/v1/videos/7/thumbnail?t=4.5", "media": "/api/v1/videos/7/media",
                "moment": "7:3.000-9.000", "url": "/api/v1/moments/7:3.000-9.000",
            }
        }
    )  # fmt: skip
    rank: int = Field(description="From 1, over all pages.")
    video_id: int
    name: str = Field(description="The video as people call it.")
    start: float = Field(description="In seconds.")
    end: float
    peak: float = Field(description="The time of its most representative frame.")
    duration: float = Field(description="Of the whole video.")
    rate: str = Field(description="Frames per second of the video, as a fraction.")
    score: float = Field(description="Comparable within one search only.")
    level: Level = Field(description="How sure it is.")
    said: list[SaidOut]
    streams: dict[str, StandingOut]
    reranked: RerankedOut | None = Field(None, description="If a model was asked to re-rank: what it said.")
    also: list[str] = Field(description="Other files with the same content.")
    curve: list[float] = Field(description="The picture's score on each clip of the video, if `explain` was asked.")
    thumbnail: str
    media: str
    moment: str = Field(description="The id of this stretch of the video, whatever query found it.")
    url: str = Field(description="Where the moment is told by itself.")


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
    duration: float
    width: int
    height: int
    rate: str = Field(description="Frames per second, as a fraction.")
    clips: int
    cues: int
    added: float = Field(description="Seconds since 1970.")
    mtime: float = Field(description="Of the file.")
    notes: list[str] = Field(description="What was odd about it.")
    available: bool = Field(description="Whether its file is there now.")
    thumbnail: str
    media: str


def text(value: str) -> str:
    r"""Text that JSON can carry, whatever bytes a file name was made of.

    >>> text("caf\udce9")
    'caf?'
    """
    return value.encode("utf-8", "replace").decode()


def fraction(rate: Fraction) -> str:
    """A frame rate as text.

    >>> fraction(Fraction(30000, 1001)), fraction(Fraction(25))
    ('30000/1001', '25/1')
    """
    return f"{rate.numerator}/{rate.denominator}"


def media_url(video: int) -> str:
    """Where a video's bytes are.

    >>> media_url(7)
    '/api/v1/videos/7/media'
    """
    return f"{API}/videos/{video}/media"


def thumbnail_url(video: int, time: float) -> str:
    """Where a picture of a video is.

    >>> thumbnail_url(7, 4.54)
    '/api/v1/videos/7/thumbnail?t=4.5'
    """
    return f"{API}/videos/{video}/thumbnail?t={max(0.0, math.floor(time * 10) / 10):.1f}"


def moment_url(id: str) -> str:
    """Where a moment is.

    >>> moment_url("7:4.500-9.000")
    '/api/v1/moments/7:4.500-9.000'
    """
    return f"{API}/moments/{id}"


def video_out(video: Video) -> VideoOut:
    """A video as the API shows it; looks whether its file is there."""
    return VideoOut(
        id=video.id,
        name=text(video.name),
        duration=video.duration,
        width=video.width,
        height=video.height,
        rate=fraction(video.rate),
        clips=video.clips,
        cues=video.cues,
        added=video.added,
        mtime=video.mtime_ns / 1e9,
        notes=[text(note) for note in video.notes],
        available=_is_file(video),
        thumbnail=thumbnail_url(video.id, video.duration / 10),
        media=media_url(video.id),
    )


def hit_out(hit: Hit, said: list[SaidOut]) -> HitOut:
    """A hit as the API shows it."""
    moment = moment_id(hit.video_id, hit.start, hit.end)
    return HitOut(
        rank=hit.rank,
        video_id=hit.video_id,
        name=text(hit.name),
        start=hit.start,
        end=hit.end,
        peak=hit.peak,
        duration=hit.duration,
        rate=fraction(hit.rate),
        score=hit.score,
        level=hit.level,
        said=said,
        streams={name: StandingOut(rank=one.rank, score=one.score) for name, one in hit.streams.items()},
        reranked=_reranked(hit),
        also=[text(name) for name in hit.also],
        curve=list(hit.curve),
        thumbnail=thumbnail_url(hit.video_id, hit.peak),
        media=media_url(hit.video_id),
        moment=moment,
        url=moment_url(moment),
    )


def _reranked(hit: Hit) -> RerankedOut | None:
    if hit.first is None:
        return None
    first = StandingOut(rank=hit.first.rank, score=hit.first.score)
    return RerankedOut(model=text(hit.model), score=hit.score, first=first)


def _is_file(video: Video) -> bool:
    try:
        return video.path.is_file()
    except (OSError, ValueError):
        return False
