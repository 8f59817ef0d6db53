"""How good a search is by the judgements."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, ConfigDict, Field

from momentseek.measures import Measure
from momentseek.server.errors import documented
from momentseek.server.found import resolved
from momentseek.server.judging.asked import MeasuredIn, number
from momentseek.server.judging.evaluation import MEASURE, Judged, Scored, judged, measure_of
from momentseek.server.judging.measuring import measured
from momentseek.server.judging.setup import Setup
from momentseek.server.judging.store import reading
from momentseek.server.service import Serving

router = APIRouter(prefix="/judging", tags=["judging"])


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
                "measure": MEASURE, "settings": str(Setup("scenes")), "value": 0.61, "low": 0.52, "high": 0.7,
                "queries": 12, "moments": 231, "waiting": 4, "missing": 0, "judged": 0.83, "notes": [],
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
    setup = await resolved(service, given.setup())
    return _out(known, await measured(service, known, setup, measure), setup, measure)


def _out(known: Judged, found: Scored, setup: Setup, measure: Measure) -> EvaluationOut:
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
