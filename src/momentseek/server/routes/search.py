"""Search by a query, by a moment or by a picture; and the curve of a query along one video."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api.library import Library
from momentseek.core.moments.moment import Moment
from momentseek.search.fusion import DEFAULT_FUSION, FUSIONS
from momentseek.search.localise.localiser import LOCALISERS
from momentseek.search.options import STREAMS
from momentseek.search.query import Query
from momentseek.server.curves import query_curves
from momentseek.server.errors import BODY_ERRORS, ApiError, error_responses
from momentseek.server.hits import HitOut, hits_out
from momentseek.server.routes.videos import MOMENT_ID_PATTERN, no_such_moment, parse_moment_id
from momentseek.server.schemas import (
    ExampleIn,
    FusionName,
    Level,
    LocaliserName,
    QueryText,
    ResultPage,
    SearchBodyIn,
    SearchIn,
    SearchParametersIn,
    StrictModel,
    VideoId,
    clean_text,
    parse_streams,
    search_page,
)
from momentseek.server.service import Service, ServiceParam, find_video

router = APIRouter(tags=["search"])


class SearchOut(BaseModel):
    """One page of hits, best match first."""

    query: str = Field(description="The query as it was understood.")
    took_seconds: float = Field(description="Seconds of searching.")
    took: float = Field(
        description="Milliseconds of searching; use `took_seconds`.", json_schema_extra={"deprecated": True}
    )
    total: int = Field(description="Hits known so far: up to the end of this page, and one more if there are more.")
    more: bool = Field(description="Whether there is another page.")
    hidden: int = Field(description="Number of weak hits that `all` would add, on whatever page; 20 means 20 or more.")
    note: str = Field(description="What a person should know about the answer; usually empty.")
    unfamiliar: list[str] = Field(
        description="Words for which the encoder of pictures has no label; empty if it does not work by labels."
    )
    complete: bool = Field(True, description="Whether all of the library was searched.")
    missing: list[str] = Field([], description="Shards of the library that did not answer.")
    hits: list[HitOut]


@router.get("/search", summary="Search")
async def search_get(service: ServiceParam, asked: Annotated[SearchParametersIn, InQuery()]) -> SearchOut:
    """The moments that match a query, best match first."""
    return await _answer(service, asked)


@router.post("/search", summary="Search, with a body", responses=BODY_ERRORS)
async def search_post(service: ServiceParam, asked: SearchBodyIn) -> SearchOut:
    """Search as with GET, with the query in the body instead of the address."""
    return await _answer(service, asked)


async def _answer(service: Service, asked: SearchIn) -> SearchOut:
    return await service.searchers.run(
        lambda library: search_out(search_page(library, asked, service.settings.rerankers))
    )


def search_out(page: ResultPage) -> SearchOut:
    """Convert a page of hits to the API's answer."""
    results = page.results
    return SearchOut(
        query=clean_text(str(results.query)),
        took_seconds=results.took,
        took=1000 * results.took,
        total=page.total,
        more=page.more,
        hidden=page.hidden,
        note=results.note,
        unfamiliar=list(results.unfamiliar),
        complete=results.complete,
        missing=list(results.missing),
        hits=hits_out(page.hits, results.query),
    )


MAX_PICTURE_CHARACTERS = 60_000
"""Of a picture in base64: what fits into a body; a JPEG with a longer side of 400 pixels does."""


class LikeIn(ExampleIn):
    """A moment, and how to answer."""

    moment: Annotated[
        str, Field(pattern=MOMENT_ID_PATTERN, description="A hit's `moment`.", examples=["7:4.500-9.000"])
    ]


class UploadedPictureIn(ExampleIn):
    """A picture, and how to answer."""

    model_config = ConfigDict(strict=True)

    picture: Annotated[
        str,
        Field(
            min_length=4,
            max_length=MAX_PICTURE_CHARACTERS,
            description="A JPEG, PNG or WebP in base64; make it smaller first (400 pixels are plenty).",
        ),
    ]


@router.get("/search/like", summary="More like this", responses=error_responses(404))
async def search_like(service: ServiceParam, asked: Annotated[LikeIn, InQuery()]) -> SearchOut:
    """The moments that look like a moment, which is not among them."""
    number, start, end = parse_moment_id(asked.moment)

    def work(library: Library) -> SearchOut:
        video = find_video(library, number)
        if start >= video.duration:
            raise no_such_moment(asked.moment)
        results = library.more_like(
            Moment(str(video.path), start, end),
            asked.offset + asked.k + 1,
            where=asked.where,
            localiser=asked.localiser or None,
            group=asked.group,
            all=asked.all,
        )
        return search_out(ResultPage(results, asked))

    return await service.searchers.run(work)


@router.post("/search/picture", summary="Search by a picture", responses=BODY_ERRORS)
async def search_picture(service: ServiceParam, asked: UploadedPictureIn) -> SearchOut:
    """The moments that look like a picture, which is looked at and not kept."""
    try:
        picture = base64.b64decode(asked.picture, validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(422, "the picture is not in base64; encode its bytes so") from None

    def work(library: Library) -> SearchOut:
        results = library.search_picture(
            picture,
            asked.offset + asked.k + 1,
            where=asked.where,
            localiser=asked.localiser or None,
            group=asked.group,
            all=asked.all,
        )
        return search_out(ResultPage(results, asked))

    return await service.searchers.run(work)


_STREAM_PATTERN = f" *({'|'.join(STREAMS)}) *"


class CurveIn(StrictModel):
    """A query and how to answer it, as for a search."""

    q: QueryText
    localiser: LocaliserName = ""
    fusion: FusionName = DEFAULT_FUSION
    streams: Annotated[
        str,
        Field(
            max_length=60,
            pattern=f"^{_STREAM_PATTERN}(,{_STREAM_PATTERN})*$",
            description=f"Some of {', '.join(STREAMS)}, separated by commas.",
        ),
    ] = ",".join(STREAMS)


class SpanOut(BaseModel):
    """A hit of the query in this video."""

    start: float
    end: float
    peak: float
    score: float
    level: Level
    rank: int = Field(description="The rank among the hits of this video.")


class CurveOut(BaseModel):
    """The curve of the query in each stream, and its hits in the video."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "edges": [0.0, 1.5, 3.0], "streams": {"vision": [0.12, 0.31], "speech": [0.0, 1.0]},
                "spans": [{"start": 1.5, "end": 3.0, "peak": 2.25, "score": 0.03, "level": "fair", "rank": 1}],
            }
        }
    )  # fmt: skip
    edges: list[float] = Field(description="Bounds of the clips in seconds: one more than each stream has values.")
    streams: dict[str, list[float]]
    spans: list[SpanOut]


@router.get("/videos/{id}/curve", summary="A query along a video", responses=error_responses(404))
async def curve(service: ServiceParam, id: VideoId, asked: Annotated[CurveIn, InQuery()]) -> CurveOut:
    """The score of each clip, and the query's hits in this video."""

    def work(library: Library) -> CurveOut:
        query = Query.parse(asked.q)
        if asked.localiser:
            _ = LOCALISERS[asked.localiser]
        _ = FUSIONS[asked.fusion]
        found = query_curves(
            library, find_video(library, id), query, asked.localiser, parse_streams(asked.streams), asked.fusion
        )
        return CurveOut(
            edges=found.edges.tolist(),
            streams={name: values.tolist() for name, values in found.streams.items()},
            spans=[
                SpanOut(start=h.start, end=h.end, peak=h.peak, score=h.score, level=h.level, rank=rank)
                for rank, h in enumerate(found.hits, 1)
            ],
        )

    return await service.searchers.run(work)
