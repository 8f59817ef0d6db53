"""The curve of one video for a query."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.search.engine import Stream
from momentseek.search.fusion import DEFAULT_FUSION, FUSIONS
from momentseek.search.localise import LOCALISERS
from momentseek.search.query import Query
from momentseek.server.answers import Level, Strict, VideoId
from momentseek.server.asked import STREAMS, FusionName, LocaliserName, Text
from momentseek.server.curves import curves
from momentseek.server.errors import documented
from momentseek.server.service import Serving, video_of

router = APIRouter(tags=["search"])


_ONE = f" *({'|'.join(STREAMS)}) *"


class CurveIn(Strict):
    """The query and how to answer it."""

    q: Text
    localiser: LocaliserName = ""
    fusion: FusionName = DEFAULT_FUSION
    streams: Annotated[
        str,
        Field(max_length=60, pattern=f"^{_ONE}(,{_ONE})*$", description=f"Some of {', '.join(STREAMS)}, with commas."),
    ] = ",".join(STREAMS)

    def chosen(self) -> tuple[Stream, ...]:
        """Each once, in our order."""
        names = {name.strip() for name in self.streams.split(",")}
        return tuple(stream for stream in STREAMS if stream in names)


class SpanOut(BaseModel):
    """A moment of the query in this video."""

    start: float
    end: float
    peak: float
    score: float
    level: Level
    rank: int = Field(description="Among the moments of this video.")


class CurveOut(BaseModel):
    """How the query scores along the video."""

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


@router.get("/videos/{id}/curve", summary="A query along a video", responses=documented(404))
async def curve(service: Serving, id: VideoId, asked: Annotated[CurveIn, InQuery()]) -> CurveOut:
    """The score of each clip, and the query's moments in this video."""

    def work(library: Library) -> CurveOut:
        query = Query.parse(asked.q)
        if asked.localiser:
            _ = LOCALISERS[asked.localiser]
        _ = FUSIONS[asked.fusion]
        made = curves(library, video_of(library, id), query, asked.localiser, asked.chosen(), asked.fusion)
        return CurveOut(
            edges=made.edges.tolist(),
            streams={name: values.tolist() for name, values in made.streams.items()},
            spans=[
                SpanOut(start=h.start, end=h.end, peak=h.peak, score=h.score, level=h.level, rank=rank)
                for rank, h in enumerate(made.hits, 1)
            ],
        )

    return await service.searchers.run(work)
