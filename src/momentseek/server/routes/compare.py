"""Two setups of the search side by side: for one query, and over all judged queries."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, Field

from momentseek.core.moments.moment import iou
from momentseek.search.hit import Hit
from momentseek.search.query import Query
from momentseek.server.errors import error_responses
from momentseek.server.hits import HitOut, hits_out
from momentseek.server.judging.annotate import SAME_MOMENT_IOU
from momentseek.server.judging.evaluation import DEFAULT_MEASURE, compare_runs, parse_measure, read_truth
from momentseek.server.judging.searches import SearchSetup, SetupHits, find_hits, measure_setup, resolve_setup
from momentseek.server.judging.store import with_store
from momentseek.server.routes.evaluation import Finite, MeasureName, SetupText
from momentseek.server.schemas import QueryText, StrictModel, clean_text, same_fields
from momentseek.server.service import ServiceParam

router = APIRouter(tags=["judging"])


class CompareIn(StrictModel):
    """A query and two setups of the search."""

    a: SetupText
    b: SetupText
    q: QueryText
    k: Annotated[int, Field(ge=1, le=100, description="Number of hits on each side.")] = 20


class SideHitOut(HitOut):
    """A hit of one side, with its rank on the other."""

    other: int | None = Field(description="The rank of the same moment (IoU of 0.5 or more) on the other side.")


class SideOut(BaseModel):
    """What one setup finds for the query."""

    settings: str
    took_seconds: float = Field(description="Duration of the search in seconds.")
    took: float = Field(
        description="Duration of the search in milliseconds; use `took_seconds`.",
        json_schema_extra={"deprecated": True},
    )
    note: str
    left_out: int = Field(description="Number of hits left out because the served library does not have their videos.")
    hits: list[SideHitOut]


class SidesOut(BaseModel):
    """What two setups find for the same query."""

    query: str
    shared: int = Field(description="Number of hits of the first side that the second side also has.")
    a: SideOut
    b: SideOut


class JudgedCompareIn(StrictModel):
    """Two setups and a measure."""

    a: SetupText
    b: SetupText
    measure: MeasureName = DEFAULT_MEASURE


class MeanOut(BaseModel):
    """The mean of a measure for one setup."""

    settings: str
    value: Finite
    low: Finite = Field(description="Lower end of its 95 % bootstrap interval.")
    high: Finite


class QueryDifferenceOut(BaseModel):
    """The values of both setups for one query."""

    query: int
    text: str
    a: Finite
    b: Finite
    difference: Finite


class ComparisonOut(BaseModel):
    """Whether two setups differ, as `momentseek compare` computes it."""

    measure: str
    queries: int = Field(description="Number of queries that count for both.")
    a: MeanOut
    b: MeanOut
    difference: Finite = Field(description="a − b.")
    low: Finite = Field(description="Lower end of the 95 % bootstrap interval of the difference.")
    high: Finite
    p: Finite = Field(description="Probability of such a difference by chance alone (Fisher's randomisation test).")
    significant: bool = Field(description="Whether p is 0.05 or less.")
    effect: Finite = Field(
        description="Cohen's d; null if all queries differ by the same amount, or there is only one."
    )
    wins: int = Field(description="Queries on which a is better.")
    ties: int
    losses: int
    test: str
    waiting: int = Field(description="Number of moments that still need annotators and do not count yet.")
    notes: list[str]
    per_query: list[QueryDifferenceOut] = Field(description="Largest difference first.")


@router.get("/compare", summary="Two searches side by side")
async def compare_query(service: ServiceParam, given: Annotated[CompareIn, InQuery()]) -> SidesOut:
    """What two setups of the search find for one query."""
    query = Query.parse(given.q)

    one, other = [await resolve_setup(service, SearchSetup.parse(side)) for side in (given.a, given.b)]
    first, second = [await find_hits(service, setup, query, given.k) for setup in (one, other)]
    a, b = await service.readers.run(lambda _: (_side(one, first, second, query), _side(other, second, first, query)))
    return SidesOut(query=clean_text(str(query)), shared=sum(h.other is not None for h in a.hits), a=a, b=b)


@router.get("/judging/compare", summary="Two searches on all judged queries", responses=error_responses(409))
async def compare_judged(service: ServiceParam, given: Annotated[JudgedCompareIn, InQuery()]) -> ComparisonOut:
    """Which of two setups is better by the judgements, by how much, and whether chance could explain it."""
    measure = parse_measure(given.measure)
    truth = await service.readers.run(with_store(service.database, read_truth))
    setups = [await resolve_setup(service, SearchSetup.parse(side)) for side in (given.a, given.b)]
    one, other = [await measure_setup(service, truth, setup, measure) for setup in setups]
    comparison = await service.readers.run(lambda _: compare_runs(one, other))
    pair = comparison.pairs[0]
    rows = [
        QueryDifferenceOut(query=int(id), text=words, a=x, b=y, difference=x - y)
        for id, words, x, y in zip(
            truth.judgements.query_ids,
            truth.judgements.queries or (),
            one.evaluation.values[:, 0].tolist(),
            other.evaluation.values[:, 0].tolist(),
            strict=True,
        )
    ]
    a, b = (
        MeanOut(settings=str(setup), value=some.value, low=some.low, high=some.high)
        for setup, some in zip(setups, (one, other), strict=True)
    )
    return ComparisonOut(
        **same_fields(ComparisonOut, pair)
        | {
            "measure": measure.name,
            "queries": comparison.queries - comparison.left_out[0],
            "a": a,
            "b": b,
            "test": comparison.test,
            "waiting": truth.waiting,
            "notes": list(dict.fromkeys((*one.evaluation.notes, *other.evaluation.notes))),
            "per_query": sorted(rows, key=lambda row: -abs(row.difference or 0.0)),
        }
    )


def _side(setup: SearchSetup, found: SetupHits, others: SetupHits, query: Query) -> SideOut:
    shown = [
        SideHitOut(**out.model_dump(), other=_rank_on_other_side(hit, found, others))
        for hit, out in zip(found.hits, hits_out(found.hits, query), strict=True)
    ]
    hits = found.hits
    return SideOut(
        settings=str(setup),
        took_seconds=hits.took,
        took=1000 * hits.took,
        note=hits.note,
        left_out=found.left_out,
        hits=shown,
    )


def _rank_on_other_side(hit: Hit, found: SetupHits, others: SetupHits) -> int | None:
    """The rank of the first hit on the other side that is the same moment, possibly in a copy of the video."""
    content = found.hashes[hit.video_id]
    return next(
        (
            other.rank
            for other in others.hits
            if others.hashes[other.video_id] == content
            and iou(hit.start, hit.end, other.start, other.end) >= SAME_MOMENT_IOU
        ),
        None,
    )
