"""The curve of a query along one video."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.search.fusion import DEFAULT_FUSION, FUSIONS
from momentseek.search.localise import LOCALISERS
from momentseek.search.options import STREAMS
from momentseek.search.query import Query
from momentseek.server.curves import query_curves
from momentseek.server.errors import error_responses
from momentseek.server.schemas import Level, StrictModel, VideoId
from momentseek.server.search_requests import FusionName, LocaliserName, QueryText, parse_streams
from momentseek.server.service import ServiceParam, find_video

router = APIRouter(tags=["search"])


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
