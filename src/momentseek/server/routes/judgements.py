"""Judging moments: queries, the next moment for somebody, what they say, and what it comes to."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi import Query as InQuery
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from momentseek.construct.annotation.guideline import EXAMPLE, INSTRUCTIONS, LEVELS
from momentseek.errors import MomentseekError
from momentseek.moments import MAX_RELEVANCE
from momentseek.search import Hit, Library
from momentseek.search.query import LONGEST, Query
from momentseek.server.answers import Body, Strict, media_url, text
from momentseek.server.errors import CHANGING, ApiError, documented
from momentseek.server.judging.candidates import BATCHES, DEPTH, create, refuse_again
from momentseek.server.judging.consensus import pairs
from momentseek.server.judging.judge import LONGEST_NAME, annotator_name, following, judge, undo
from momentseek.server.judging.rows import Judgement, by_query
from momentseek.server.judging.setup import Setup, pooled
from momentseek.server.judging.store import Store, reading
from momentseek.server.judging.videos import present
from momentseek.server.service import Serving
from momentseek.tables import count

router = APIRouter(prefix="/judging", tags=["judging"])
QueryId = Annotated[int, InPath(ge=1, le=2**53, description="The query's id.", examples=[1])]
Id = Annotated[int, Field(ge=1, le=2**53)]
Annotator = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_NAME, description="A name: 1 to 64 printable characters.", examples=["ann"]),
    AfterValidator(annotator_name),
]
Relevance = Annotated[int, Field(ge=0, le=MAX_RELEVANCE)]


class QueryIn(Body):
    """A query to be judged."""

    text: Annotated[str, Field(min_length=1, max_length=LONGEST, examples=["a dog runs"])]
    depth: Annotated[int, Field(ge=1, le=50, description="Moments of a batch.")] = DEPTH


class QueryOut(BaseModel):
    """A query and how far its judging is."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 1, "text": "a dog runs", "depth": 20, "batch": 1, "candidates": 20,
                "judged": {"ann": 20, "bob": 12}, "kept": 11, "discarded": 0, "waiting": 9, "removed": 0,
                "created": 1760000000.0,
            }
        }
    )  # fmt: skip
    id: int
    text: str
    depth: int
    batch: int = Field(description="2 once the second batch is judged as well.")
    candidates: int = Field(description="Moments to be judged.")
    judged: dict[str, int] = Field(description="Annotator → moments judged.")
    kept: int = Field(description="Moments with a level.")
    discarded: int = Field(description="Moments on which four annotators do not agree.")
    waiting: int = Field(description="Moments that need annotators.")
    removed: int = Field(description="Of those, moments of videos that are no longer in the library.")
    created: float = Field(description="Seconds since 1970.")


class QueriesOut(BaseModel):
    """All queries, the oldest first."""

    queries: list[QueryOut]


class CandidateOut(BaseModel):
    """A moment to judge; nothing that would tell what to think of it."""

    id: int
    video_id: int
    start: float
    end: float
    media: str


class WhoIn(Strict):
    """Who asks."""

    annotator: Annotator


class NextIn(WhoIn):
    """Who asks, and what they would rather judge later."""

    skip: Annotated[
        list[Id], Field(max_length=100, default_factory=list, description="Candidates to pass over for now.")
    ]


class NextOut(BaseModel):
    """What to judge next."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "query": "a dog runs",
                "candidate": {"id": 9, "video_id": 7, "start": 3.0, "end": 9.0, "media": "/api/v1/videos/7/media"},
                "left": 8, "done": 12, "total": 20, "removed": 0, "note": "",
            }
        }
    )  # fmt: skip
    query: str
    candidate: CandidateOut | None = Field(
        description="Null when nothing is left for this annotator, skipped ones aside."
    )
    left: int
    done: int
    total: int
    removed: int = Field(description="Moments that cannot be shown: their video was removed, or its file is not there.")
    note: str = Field(description="What the annotator should know; often nothing.")


class JudgementIn(Body):
    """What somebody says about a moment."""

    query: Id
    candidate: Id
    annotator: Annotator
    relevance: Relevance


class JudgementOut(BaseModel):
    """A judgement."""

    query: int
    candidate: int
    annotator: str
    relevance: int
    at: float = Field(description="Seconds since 1970.")


class SaidOut(JudgementOut):
    """A judgement that counts now."""

    before: int | None = Field(description="What the same annotator said before.")
    outcome: Literal["kept", "discarded", "waiting"] = Field(description="What became of the moment.")


class UndoneOut(JudgementOut):
    """A judgement that no longer counts."""

    now: int | None = Field(description="What the annotator had said before, which counts again.")


class LevelOut(BaseModel):
    """One of the five levels."""

    value: int
    name: str
    meaning: str


class GuidelineOut(BaseModel):
    """How to judge."""

    levels: list[LevelOut] = Field(description="The best first.")
    instructions: str
    example: str


@router.get("/queries", summary="Queries to judge")
async def queries(service: Serving) -> QueriesOut:
    """All queries and how far each is."""
    return await service.readers.run(lambda library: QueriesOut(queries=_queries(library)))


@router.post("/queries", status_code=201, summary="Have a query judged", responses={**documented(409), **CHANGING})
async def add_query(service: Serving, given: QueryIn) -> QueryOut:
    """Make a query with its candidates: what the search finds with every localiser and stream, each moment once."""
    query = Query.parse(given.text)
    words = text(str(query))
    await service.readers.run(reading(lambda store: refuse_again(store, words)))
    lists: list[list[Hit]] = []
    for setup in pooled():  # one search at a time, so that others' searches take their turns

        def one(library: Library, setup: Setup = setup) -> list[Hit]:
            return setup.search(library, query, BATCHES * given.depth)

        try:
            lists.append(await service.searchers.run(one))
        except MomentseekError:
            if not lists:  # what the usual search refuses; another may only lack an encoder
                raise

    def keep(library: Library) -> QueryOut:
        with Store(library.path, create=True) as store:
            new = create(store, library.catalog, words, lists, given.depth)
        return _queries(library, new)[0]

    return await service.readers.run(keep)


@router.delete("/queries/{id}", summary="Remove a query", responses={**documented(404, 409), **CHANGING})
async def remove_query(service: Serving, id: QueryId) -> QueryOut:
    """Take away a query that nobody has judged yet."""

    def remove(library: Library) -> QueryOut:
        gone = _queries(library, id)[0]
        with Store(library.path) as store, store.changes():
            if store.judgements(id):
                raise ApiError(409, f"moments of query {id} have been judged; what people said is not thrown away")
            store.remove_query(id)
        return gone

    return await service.readers.run(remove)


@router.get("/queries/{id}/next", summary="The next moment to judge", responses=documented(404))
async def next_candidate(service: Serving, id: QueryId, given: Annotated[NextIn, InQuery()]) -> NextOut:
    """The next moment of a query for an annotator, in an order of their own."""

    def look(library: Library) -> NextOut:
        with Store(library.path) as store:
            task = following(store, library.catalog, id, given.annotator, given.skip)
            words = store.query(id).text
        shown = None
        if task.candidate is not None and task.video_id is not None:
            one = task.candidate
            shown = CandidateOut(
                id=one.id, video_id=task.video_id, start=one.start, end=one.end, media=media_url(task.video_id)
            )
        note = ""
        if task.hidden:
            note = f"{count(task.hidden, 'moment')} cannot be shown: removed from the library, or the file is not there"
        return NextOut(
            query=words,
            candidate=shown,
            left=task.left,
            done=task.done,
            total=task.done + task.left,
            removed=task.hidden,
            note=note,
        )

    return await service.readers.run(look)


@router.put("/judgements", summary="Judge a moment", responses={**documented(404, 409), **CHANGING})
async def put_judgement(service: Serving, given: JudgementIn) -> SaidOut:
    """Say how relevant a moment is; said again, the later counts, and the earlier is kept in the history."""

    def keep(library: Library) -> SaidOut:
        with Store(library.path) as store:
            said = judge(store, library.catalog, given.query, given.candidate, given.annotator, given.relevance)
        return SaidOut(**_plain(said.judgement), before=said.before, outcome=said.pair.outcome)  # type: ignore[arg-type]

    return await service.readers.run(keep)


@router.delete("/judgements/last", summary="Undo", responses={**documented(404), **CHANGING})
async def delete_last(service: Serving, given: Annotated[WhoIn, InQuery()]) -> UndoneOut:
    """Take back what an annotator said last, once more each time."""

    def back(library: Library) -> UndoneOut:
        with Store(library.path) as store:
            last, now = undo(store, library.catalog, given.annotator)
        return UndoneOut(**_plain(last), now=now)

    return await service.readers.run(back)


@router.get("/guideline", summary="How to judge")
async def guideline(service: Serving) -> GuidelineOut:
    """The five levels, and when to choose which."""
    levels = [LevelOut(value=v.value, name=v.name, meaning=v.meaning) for v in LEVELS]
    return GuidelineOut(levels=levels, instructions=INSTRUCTIONS, example=EXAMPLE)


def _plain(judgement: Judgement) -> dict[str, Any]:
    return {name: getattr(judgement, name) for name in JudgementOut.model_fields}


def _queries(library: Library, only: int | None = None) -> list[QueryOut]:
    with Store(library.path) as store, store.view():
        rows = store.queries() if only is None else [store.query(only)]
        candidates, said = store.candidates(only), store.judgements(only)
    found = pairs((c.pair for c in candidates), said)
    here = present(library.catalog, (c.video for c in candidates))
    answer = []
    groups, sayings = by_query(candidates), by_query(said)
    for row in rows:
        own = groups.get(row.id, [])
        counts = Counter(found[c.pair].outcome for c in own)
        answer.append(
            QueryOut(
                id=row.id,
                text=row.text,
                depth=row.depth,
                batch=row.batches,
                candidates=len(own),
                judged=dict(Counter(j.annotator for j in sayings.get(row.id, []))),
                kept=counts["kept"],
                discarded=counts["discarded"],
                waiting=counts["waiting"],
                removed=sum(found[c.pair].needs > 0 and c.video not in here for c in own),
                created=row.created,
            )
        )
    return answer
