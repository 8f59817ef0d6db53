"""Requests and answers that several routes share: base models, ids, addresses, videos, and searches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Path as InPath
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from momentseek.api.library import Library
from momentseek.library.location import is_elsewhere
from momentseek.library.video import Video
from momentseek.search.fusion import DEFAULT_FUSION
from momentseek.search.hit import Results
from momentseek.search.options import STREAMS, Stream
from momentseek.search.query import MAX_CHARACTERS
from momentseek.server.errors import ApiError, hide_paths

API = "/api/v1"
VideoId = Annotated[int, InPath(ge=1, le=2**53, description="The video's id.", examples=[7])]
Seconds = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Level = Literal["strong", "fair", "weak"]
MAX_HITS = 500
"""Largest number of hits on one page, and largest offset of a page."""
QueryText = Annotated[
    str, Field(max_length=MAX_CHARACTERS, description="The query (docs/searching.md).", examples=["a dog runs"])
]
FusionName = Annotated[
    str, Field(max_length=40, description="How the streams are fused into one ranking; GET /status lists the names.")
]
EncoderName = Annotated[
    str,
    Field(
        max_length=120,
        description="Search the library with this encoder; GET /status lists them. Empty: the served library.",
    ),
]
LocaliserName = Annotated[
    str,
    Field(
        max_length=40, description="The method that finds start and end; GET /status lists them. Empty: the default."
    ),
]
RerankerName = Annotated[
    str,
    Field(
        max_length=255,
        description="The model that re-ranks the best videos; GET /status lists them. Empty: no re-ranking.",
    ),
]
ALL_STREAMS = ",".join(STREAMS)


def example(values: dict[str, Any], *, frozen: bool = False) -> ConfigDict:
    """A model's settings with an example for the OpenAPI document."""
    return ConfigDict(json_schema_extra={"example": values}, frozen=frozen)


class StrictModel(BaseModel):
    """Parameters that clients send; an unknown name is an error."""

    model_config = ConfigDict(extra="forbid")


class StrictBody(StrictModel):
    """A JSON body that clients send; values are not converted, so ``true`` is not a number."""

    model_config = ConfigDict(strict=True)


class VideoOut(BaseModel):
    """A video of the library."""

    model_config = example({
        "id": 7, "name": "kitchen.mp4", "duration": 60.0, "width": 1280, "height": 720, "rate": "25/1",
        "clips": 40, "cues": 12, "added": 1760000000.0, "mtime": 1750000000.0, "notes": [], "available": True,
        "thumbnail": "/api/v1/videos/7/thumbnail?t=6.0", "media": "/api/v1/videos/7/media",
    })  # fmt: skip
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
    recorded: float | None = Field(
        None, description="When it was recorded, if the file says so; `after:` and `before:` use it."
    )
    place: list[float] | None = Field(None, description="Latitude and longitude of the recording, if the file says so.")
    notes: list[str] = Field(description="What was unusual about the file.")
    available: bool = Field(description="Whether the file can be read now and is the one that was added.")
    thumbnail: str
    media: str


def same_fields(model: type[BaseModel], source: object) -> dict[str, Any]:
    """The values of those attributes of an object that have the same names as a model's fields."""
    return {name: getattr(source, name) for name in model.model_fields if hasattr(source, name)}


def clean_text(value: str) -> str:
    r"""The text as valid Unicode, with characters replaced that JSON cannot represent.

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
    """The id of a moment: the video's id and the times rounded to milliseconds. It does not depend on the query.

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
    shown = {
        "name": clean_text(video.name),
        "rate": rate_text(video.rate),
        "mtime": video.mtime_ns / 1e9,
        "place": None if video.place is None else list(video.place),
        "notes": [hide_paths(clean_text(note)) for note in video.notes],
        "available": video.file.is_there() or is_elsewhere(video.path),
        "thumbnail": thumbnail_url(video.id, video.duration / 10),
        "media": media_url(video.id),
    }
    return VideoOut(**same_fields(VideoOut, video) | shown)


class SearchIn(StrictModel):
    """A query and how to answer it."""

    q: QueryText
    k: Annotated[int, Field(ge=1, le=MAX_HITS, description="Number of hits on this page.")] = 20
    offset: Annotated[int, Field(ge=0, le=MAX_HITS, description="Number of hits before this page.")] = 0
    group: Annotated[Literal["clip", "video"], Field(description="`video` gives one hit per video.")] = "clip"
    localiser: LocaliserName = ""
    fusion: FusionName = DEFAULT_FUSION
    rerank: RerankerName = ""
    rerank_videos: Annotated[int, Field(ge=1, le=100, description="Number of videos that are re-ranked.")] = 20
    all: Annotated[bool, Field(description="Include weak hits.")] = False
    explain: Annotated[bool, Field(description="Include the curve of each hit's video.")] = False


class ExampleIn(StrictModel):
    """How to answer a search by an example."""

    where: Annotated[str, Field(max_length=MAX_CHARACTERS, description="Only filters: `in:`, `before:`, `after:`.")] = (
        ""
    )
    k: Annotated[int, Field(ge=1, le=MAX_HITS, description="Number of hits on this page.")] = 20
    offset: Annotated[int, Field(ge=0, le=MAX_HITS, description="Number of hits before this page.")] = 0
    group: Annotated[Literal["clip", "video"], Field(description="`video` gives one hit per video.")] = "clip"
    localiser: LocaliserName = ""
    all: Annotated[bool, Field(description="Include weak hits.")] = False


def _check_streams(value: str) -> str:
    if not {name.strip() for name in value.split(",")} <= set(STREAMS):
        raise ValueError(f"some of {', '.join(STREAMS)}, separated by commas")
    return value


StreamNames = Annotated[
    str,
    Field(max_length=60, description=f"Some of {', '.join(STREAMS)}, separated by commas."),
    AfterValidator(_check_streams),
]


class SearchParametersIn(SearchIn):
    """A search as the parameters of a GET request."""

    streams: StreamNames = ALL_STREAMS


class SearchBodyIn(SearchIn):
    """A search as the body of a POST request."""

    model_config = ConfigDict(strict=True)

    streams: Annotated[
        list[Stream], Field(min_length=1, max_length=len(STREAMS), default_factory=lambda: list(STREAMS))
    ]


def parse_streams(names: str | Sequence[str]) -> tuple[Stream, ...]:
    """Parse names of streams, separated by commas or in a list, into streams, each once and in the usual order.

    >>> parse_streams("speech, vision,speech")
    ('vision', 'speech')
    """
    given = {name.strip() for name in (names.split(",") if isinstance(names, str) else names)}
    return tuple(stream for stream in STREAMS if stream in given)


def search_library(
    library: Library, asked: SearchParametersIn | SearchBodyIn, rerankers: Mapping[str, Path]
) -> Results:
    """Search for the hits of a page, those before it, and one more, which shows whether there is another page.

    Answers 422 if the search names a re-ranking model that the server does not have.
    """
    if asked.rerank and asked.rerank not in rerankers:
        known = (
            f"there are {', '.join(rerankers)}" if rerankers else "there are none; momentseek serve --rerank adds some"
        )
        raise ApiError(422, f"there is no model {asked.rerank!r} to re-rank with; {known}")
    return library.search(
        asked.q,
        asked.offset + asked.k + 1,
        localiser=asked.localiser or None,
        group=asked.group,
        streams=parse_streams(asked.streams),
        explain=asked.explain,
        all=asked.all,
        fusion=asked.fusion,
        rerank=rerankers[asked.rerank] if asked.rerank else None,
        rerank_videos=asked.rerank_videos,
    )
