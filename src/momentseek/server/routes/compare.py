"""Two setups of the search side by side: for one query, and over all judged queries."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, Field

from momentseek.moments import iou
from momentseek.search import Hit
from momentseek.search.query import Query
from momentseek.server.answers import HitOut, Strict, hit_out, text
from momentseek.server.asked import Text
from momentseek.server.errors import documented
from momentseek.server.found import Found, find, resolved
from momentseek.server.judging.asked import MeasureName, SetupText, number
from momentseek.server.judging.evaluation import MEASURE, compared, judged, measure_of
from momentseek.server.judging.measuring import measured
from momentseek.server.judging.setup import Setup
from momentseek.server.judging.store import reading
from momentseek.server.marks import said
from momentseek.server.service import Serving

router = APIRouter(tags=["judging"])
OVERLAP = 0.5
"""IoU from which a moment of the one side is that of the other."""


class CompareIn(Strict):
    """A query and two setups."""

    a: SetupText
    b: SetupText
    q: Text
    k: Annotated[int, Field(ge=1, le=100, description="Moments on each side.")] = 20


class SideHit(HitOut):
    """A moment of one side."""

    other: int | None = Field(description="The rank of the same moment (IoU of 0.5 or more) on the other side.")


class SideOut(BaseModel):
    """What one setup finds."""

    settings: str
    took: float = Field(description="Milliseconds of searching.")
    note: str
    left_out: int = Field(description="Moments of videos that only the library beside has.")
    hits: list[SideHit]


class SidesOut(BaseModel):
    """Two setups side by side."""

    query: str
    shared: int = Field(description="Moments of the first side that are on the second as well.")
    a: SideOut
    b: SideOut


class JudgedCompareIn(Strict):
    """Two setups and a measure."""

    a: SetupText
    b: SetupText
    measure: MeasureName = MEASURE


class MeanOut(BaseModel):
    """One setup's mean."""

    settings: str
    value: float | None
    low: float | None = Field(description="Where its 95 % bootstrap interval begins.")
    high: float | None


class QueryDifferenceOut(BaseModel):
    """One query."""

    query: int
    text: str
    a: float | None
    b: float | None
    difference: float | None


class ComparisonOut(BaseModel):
    """Whether two setups differ, as `momentseek compare` computes it."""

    measure: str
    queries: int = Field(description="That count for both.")
    a: MeanOut
    b: MeanOut
    difference: float | None = Field(description="a − b.")
    low: float | None = Field(description="Where the difference's 95 % bootstrap interval begins.")
    high: float | None
    p: float | None = Field(description="That chance alone makes such a difference (Fisher's randomisation test).")
    significant: bool = Field(description="Whether p is 0.05 or less.")
    effect: float | None = Field(description="Cohen's d; null if all queries differ by the same, or one query is all.")
    wins: int = Field(description="Queries on which a is better.")
    ties: int
    losses: int
    test: str
    waiting: int = Field(description="Moments that still need annotators and do not count yet.")
    notes: list[str]
    per_query: list[QueryDifferenceOut] = Field(description="The largest difference first.")


@router.get("/compare", summary="Two searches side by side")
async def compare_query(service: Serving, given: Annotated[CompareIn, InQuery()]) -> SidesOut:
    """What two setups find for one query."""
    query = Query.parse(given.q)

    one, other = [await resolved(service, Setup.parse(side)) for side in (given.a, given.b)]
    first, second = [await find(service, setup, query, given.k) for setup in (one, other)]
    a, b = await service.readers.run(lambda _: (_side(one, first, second, query), _side(other, second, first, query)))
    return SidesOut(query=text(str(query)), shared=sum(h.other is not None for h in a.hits), a=a, b=b)


@router.get("/judging/compare", summary="Two searches on all judged queries", responses=documented(409))
async def compare_judged(service: Serving, given: Annotated[JudgedCompareIn, InQuery()]) -> ComparisonOut:
    """Which of two setups is better by the judgements, by how much, and whether chance could explain it."""
    measure = measure_of(given.measure)
    known = await service.readers.run(reading(judged))
    setups = [await resolved(service, Setup.parse(side)) for side in (given.a, given.b)]
    one, other = [await measured(service, known, setup, measure) for setup in setups]
    comparison = await service.readers.run(lambda _: compared(one, other))
    pair = comparison.pairs[0]
    rows = [
        QueryDifferenceOut(query=int(id), text=words, a=number(x), b=number(y), difference=number(x - y))
        for id, words, x, y in zip(
            known.truth.query_ids,
            known.truth.queries or (),
            one.evaluation.values[:, 0].tolist(),
            other.evaluation.values[:, 0].tolist(),
            strict=True,
        )
    ]
    a, b = (
        MeanOut(settings=str(setup), value=number(some.value), low=number(some.low), high=number(some.high))
        for setup, some in zip(setups, (one, other), strict=True)
    )
    return ComparisonOut(
        measure=measure.name,
        queries=comparison.queries - comparison.left_out[0],
        a=a,
        b=b,
        difference=number(pair.difference),
        low=number(pair.low),
        high=number(pair.high),
        p=number(pair.p),
        significant=pair.significant,
        effect=number(pair.effect),
        wins=pair.wins,
        ties=pair.ties,
        losses=pair.losses,
        test=comparison.test,
        waiting=known.waiting,
        notes=list(dict.fromkeys((*one.evaluation.notes, *other.evaluation.notes))),
        per_query=sorted(rows, key=lambda row: -abs(row.difference or 0.0)),
    )


def _side(setup: Setup, found: Found, others: Found, query: Query) -> SideOut:
    shown = [
        SideHit(**hit_out(hit, words).model_dump(), other=_rank(hit, found, others))
        for hit, words in zip(found.hits, said(found.hits, query), strict=True)
    ]
    hits = found.hits
    return SideOut(settings=str(setup), took=1000 * hits.took, note=hits.note, left_out=found.left_out, hits=shown)


def _rank(hit: Hit, found: Found, others: Found) -> int | None:
    """The rank of the first of the others that is the same moment, also if it is that of a copy of the video."""
    content = found.hashes[hit.video_id]
    return next(
        (
            other.rank
            for other in others.hits
            if others.hashes[other.video_id] == content and iou(hit.start, hit.end, other.start, other.end) >= OVERLAP
        ),
        None,
    )
