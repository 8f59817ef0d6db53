"""How good a search is by the judgements."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, ConfigDict, Field, model_validator

from momentseek.errors import MomentseekError
from momentseek.measures import Measure
from momentseek.moments import Run
from momentseek.search import Library
from momentseek.search.hit import Hit
from momentseek.search.localise import DEFAULT
from momentseek.search.options import STREAMS
from momentseek.server.answers import Strict
from momentseek.server.asked import LocaliserName
from momentseek.server.errors import documented
from momentseek.server.judging.evaluation import (
    MEASURE,
    Judged,
    Scored,
    answer,
    depth_of,
    judged,
    measure_of,
    run_of,
    scored,
)
from momentseek.server.judging.setup import Setup
from momentseek.server.judging.store import reading
from momentseek.server.routes.status import generation_of
from momentseek.server.service import Service, Serving

router = APIRouter(prefix="/judging", tags=["judging"])
CHANGED = "the library changed while it was searched; measure again when it rests"
MeasureName = Annotated[str, Field(min_length=1, max_length=100, description="A measure (docs/measures.md).")]


class MeasuredIn(Strict):
    """Which search, and the measure."""

    localiser: LocaliserName = DEFAULT
    streams: Annotated[str, Field(max_length=60, description="Some of vision, speech and name, with commas.")] = (
        ",".join(STREAMS)
    )
    all: Annotated[bool, Field(description="Also weak hits: the whole ranking is measured.")] = True
    measure: MeasureName = MEASURE

    @model_validator(mode="after")
    def _known(self) -> MeasuredIn:
        try:
            self.setup()
        except MomentseekError as e:
            raise ValueError(str(e)) from None
        return self

    def setup(self) -> Setup:
        """The search."""
        return Setup.of(self.localiser, self.streams, "true" if self.all else "false")


class QueryValue(BaseModel):
    """One query."""

    query: int
    text: str
    value: float | None = Field(description="Null if the query does not count for this measure.")


class EvaluationOut(BaseModel):
    """A measure of a search, as `momentseek evaluate` computes it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "measure": MEASURE, "settings": str(Setup()), "value": 0.61, "low": 0.52, "high": 0.7, "queries": 12,
                "moments": 231, "waiting": 4, "missing": 0, "judged": 0.83, "notes": [],
                "per_query": [{"query": 1, "text": "a dog runs", "value": 0.61}],
            }
        }
    )  # fmt: skip
    measure: str
    settings: str
    value: float | None = Field(description="The mean over the queries that count.")
    low: float | None = Field(description="Where its 95 % bootstrap interval begins.")
    high: float | None
    queries: int
    moments: int = Field(description="Judged moments, over all queries.")
    waiting: int = Field(description="Moments that still need annotators and do not count yet.")
    missing: int = Field(description="Queries for which the search finds nothing; they count as 0.")
    judged: float | None = Field(description="The share of the moments found that was judged; others count as 0.")
    notes: list[str]
    per_query: list[QueryValue]


@router.get("/evaluation", summary="Measure a search", responses=documented(409))
async def evaluation(service: Serving, given: Annotated[MeasuredIn, InQuery()]) -> EvaluationOut:
    """A measure of the search as it is set up, on all judged queries."""
    measure = measure_of(given.measure)
    known = await service.readers.run(reading(judged))
    return evaluation_out(known, await measured(service, known, given.setup(), measure), given.setup(), measure)


async def measured(service: Service, known: Judged, setup: Setup, measure: Measure) -> Scored:
    """Search for every judged query, and measure what was found."""
    before = await service.readers.run(generation_of)
    run = await searched(service, known, setup, measure)
    found = await service.readers.run(lambda _: scored(known, run, measure))
    if await service.readers.run(generation_of) == before:
        return found
    notes = (*found.evaluation.notes, CHANGED)
    return replace(found, evaluation=replace(found.evaluation, notes=notes))


async def searched(service: Service, known: Judged, setup: Setup, measure: Measure) -> Run:
    """Search for every judged query: one at a time, so that others' searches take their turns."""
    found: list[list[tuple[Hit, str]]] = []
    for query in known.truth.queries or ():

        def one(library: Library, query: str = query) -> list[tuple[Hit, str]]:
            return answer(library, query, setup, depth_of(measure))

        found.append(await service.searchers.run(one))
    return run_of(known, found, setup)


def evaluation_out(known: Judged, found: Scored, setup: Setup, measure: Measure) -> EvaluationOut:
    """The figures as the API shows them."""
    result, truth = found.evaluation, known.truth
    return EvaluationOut(
        measure=measure.name,
        settings=str(setup),
        value=number(found.value),
        low=number(found.low),
        high=number(found.high),
        queries=len(truth),
        moments=len(truth.relevance),
        waiting=known.waiting,
        missing=len(result.missing),
        judged=next((number(share) for share in result.judged.values()), None),
        notes=list(result.notes),
        per_query=[
            QueryValue(query=int(id), text=words, value=number(value))
            for id, words, value in zip(truth.query_ids, truth.queries or (), result.values[:, 0].tolist(), strict=True)
        ],
    )


def number(value: float) -> float | None:
    """A number that JSON has; None for others.

    >>> number(0.5), number(float("nan")), number(float("inf"))
    (0.5, None, None)
    """
    return value if math.isfinite(value) else None
