"""Judgements: the next moment for an annotator, their judgement of it, undo, and the guideline."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.construct.annotation.guideline import EXAMPLE_JUDGEMENTS, INSTRUCTIONS, RELEVANCE_LEVELS
from momentseek.moments import MAX_RELEVANCE
from momentseek.server.errors import BODY_ERRORS, error_responses
from momentseek.server.judging.judge import (
    MAX_NAME_CHARACTERS,
    next_task,
    normalise_annotator,
    save_judgement,
    undo_last,
)
from momentseek.server.judging.rows import JudgementRow
from momentseek.server.judging.schemas import QueryId, QueryOut, query_out
from momentseek.server.judging.states import query_states
from momentseek.server.judging.store import JudgementStore
from momentseek.server.schemas import StrictBody, StrictModel, media_url
from momentseek.server.service import ServiceParam
from momentseek.tables import count

router = APIRouter(prefix="/judging", tags=["judging"])
Id = Annotated[int, Field(ge=1, le=2**53)]
Annotator = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        description="A name: 1 to 64 printable characters.",
        examples=["ann"],
    ),
    AfterValidator(normalise_annotator),
]
Relevance = Annotated[int, Field(ge=0, le=MAX_RELEVANCE)]


class CandidateOut(BaseModel):
    """A moment to judge, without anything that might influence the annotator."""

    id: int
    video_id: int
    start: float
    end: float
    media: str


class AnnotatorIn(StrictModel):
    """The name of the annotator."""

    annotator: Annotator


class NextIn(AnnotatorIn):
    """The annotator, and the candidates that they leave for later."""

    skip: Annotated[list[Id], Field(max_length=100, default_factory=list, description="Candidates to skip for now.")]


class NextOut(BaseModel):
    """The next moment to judge."""

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
        description="Null when nothing is left for this annotator but skipped candidates."
    )
    left: int
    done: int
    total: int
    removed: int = Field(
        description="Moments that cannot be shown: their video was removed, or its file cannot be read."
    )
    note: str = Field(description="What the annotator should know; usually empty.")


class JudgementIn(StrictBody):
    """How relevant an annotator finds a moment."""

    query: Id
    candidate: Id
    annotator: Annotator
    relevance: Relevance


class JudgementOut(BaseModel):
    """A judgement of a moment."""

    query: int
    candidate: int
    annotator: str
    relevance: int
    at: float = Field(description="Seconds since 1970.")


class SavedJudgementOut(JudgementOut):
    """A judgement that counts now."""

    before: int | None = Field(description="The level that the same annotator gave before.")
    outcome: Literal["kept", "discarded", "waiting"] = Field(description="What became of the moment.")
    state: QueryOut = Field(description="How far the judging of the query has got.")


class UndoneJudgementOut(JudgementOut):
    """A judgement that no longer counts."""

    now: int | None = Field(description="The level that the annotator gave before, which counts again.")
    state: QueryOut = Field(description="How far the judging of the query has got.")


class LevelOut(BaseModel):
    """One of the five levels of relevance."""

    value: int
    name: str
    meaning: str


class GuidelineOut(BaseModel):
    """The guideline: how to judge the relevance of a moment."""

    levels: list[LevelOut] = Field(description="Highest first.")
    instructions: str
    example: str


@router.get("/queries/{id}/next", summary="The next moment to judge", responses=error_responses(404))
async def next_candidate(service: ServiceParam, id: QueryId, given: Annotated[NextIn, InQuery()]) -> NextOut:
    """The next moment of a query for an annotator, in their own order."""

    def read(library: Library) -> NextOut:
        with JudgementStore(service.place) as store:
            task = next_task(store, library.catalog, id, given.annotator, given.skip)
            words = store.query(id).text
        shown = None
        if task.candidate is not None and task.video_id is not None:
            one = task.candidate
            shown = CandidateOut(
                id=one.id, video_id=task.video_id, start=one.start, end=one.end, media=media_url(task.video_id)
            )
        note = ""
        if task.hidden:
            note = (
                f"{count(task.hidden, 'moment')} cannot be shown: removed from the library, or the file cannot be read"
            )
        return NextOut(
            query=words,
            candidate=shown,
            left=task.left,
            done=task.done,
            total=task.done + task.left,
            removed=task.hidden,
            note=note,
        )

    return await service.readers.run(read)


@router.put("/judgements", summary="Judge a moment", responses={**error_responses(404, 409), **BODY_ERRORS})
async def put_judgement(service: ServiceParam, given: JudgementIn) -> SavedJudgementOut:
    """Judge how relevant a moment is. Judged again, the later judgement counts; the earlier stays in the history."""

    def save(library: Library) -> SavedJudgementOut:
        with JudgementStore(service.place) as store:
            saved = save_judgement(
                store, library.catalog, given.query, given.candidate, given.annotator, given.relevance
            )
        return SavedJudgementOut(
            **_judgement_fields(saved.judgement),
            before=saved.before,
            outcome=saved.pair.outcome,  # type: ignore[arg-type]
            state=query_out(*query_states(library, service.place, given.query)),
        )

    return await service.readers.run(save)


@router.delete("/judgements/last", summary="Undo", responses={**error_responses(404), **BODY_ERRORS})
async def delete_last(service: ServiceParam, given: Annotated[AnnotatorIn, InQuery()]) -> UndoneJudgementOut:
    """Undo an annotator's last judgement; each further call undoes one more."""

    def undo(library: Library) -> UndoneJudgementOut:
        with JudgementStore(service.place) as store:
            last, now = undo_last(store, library.catalog, given.annotator)
        return UndoneJudgementOut(
            **_judgement_fields(last), now=now, state=query_out(*query_states(library, service.place, last.query))
        )

    return await service.readers.run(undo)


@router.get("/guideline", summary="How to judge")
async def guideline(service: ServiceParam) -> GuidelineOut:
    """The five levels, and when to choose which."""
    levels = [LevelOut(value=v.value, name=v.name, meaning=v.meaning) for v in RELEVANCE_LEVELS]
    return GuidelineOut(levels=levels, instructions=INSTRUCTIONS, example=EXAMPLE_JUDGEMENTS)


def _judgement_fields(judgement: JudgementRow) -> dict[str, Any]:
    return {name: getattr(judgement, name) for name in JudgementOut.model_fields}
