"""Judging moments: the next one for somebody, and what they say."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.construct.annotation.guideline import EXAMPLE_JUDGEMENTS, INSTRUCTIONS, RELEVANCE_LEVELS
from momentseek.moments import MAX_RELEVANCE
from momentseek.server.answers import Body, Strict, media_url
from momentseek.server.errors import CHANGING, documented
from momentseek.server.judging.answers import QueryId, QueryOut, query_out
from momentseek.server.judging.judge import LONGEST_NAME, annotator_name, following, judge, undo
from momentseek.server.judging.rows import Judgement
from momentseek.server.judging.states import states
from momentseek.server.judging.store import Store
from momentseek.server.service import Serving
from momentseek.tables import count

router = APIRouter(prefix="/judging", tags=["judging"])
Id = Annotated[int, Field(ge=1, le=2**53)]
Annotator = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_NAME, description="A name: 1 to 64 printable characters.", examples=["ann"]),
    AfterValidator(annotator_name),
]
Relevance = Annotated[int, Field(ge=0, le=MAX_RELEVANCE)]


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
    state: QueryOut = Field(description="How far the query is now.")


class UndoneOut(JudgementOut):
    """A judgement that no longer counts."""

    now: int | None = Field(description="What the annotator had said before, which counts again.")
    state: QueryOut = Field(description="How far the query is now.")


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
        return SaidOut(
            **_plain(said.judgement),
            before=said.before,
            outcome=said.pair.outcome,  # type: ignore[arg-type]
            state=query_out(*states(library, given.query)),
        )

    return await service.readers.run(keep)


@router.delete("/judgements/last", summary="Undo", responses={**documented(404), **CHANGING})
async def delete_last(service: Serving, given: Annotated[WhoIn, InQuery()]) -> UndoneOut:
    """Take back what an annotator said last, once more each time."""

    def back(library: Library) -> UndoneOut:
        with Store(library.path) as store:
            last, now = undo(store, library.catalog, given.annotator)
        return UndoneOut(**_plain(last), now=now, state=query_out(*states(library, last.query)))

    return await service.readers.run(back)


@router.get("/guideline", summary="How to judge")
async def guideline(service: Serving) -> GuidelineOut:
    """The five levels, and when to choose which."""
    levels = [LevelOut(value=v.value, name=v.name, meaning=v.meaning) for v in RELEVANCE_LEVELS]
    return GuidelineOut(levels=levels, instructions=INSTRUCTIONS, example=EXAMPLE_JUDGEMENTS)


def _plain(judgement: Judgement) -> dict[str, Any]:
    return {name: getattr(judgement, name) for name in JudgementOut.model_fields}
