"""Routes to judge moments: queries, the next moment for an annotator, judgements, undo, guideline and rule."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi import Query as InQuery
from pydantic import AfterValidator, BaseModel, Field

from momentseek.api.library import Library
from momentseek.benchmarks.datasets.annotation.label_studio import EXAMPLE_JUDGEMENTS, INSTRUCTIONS, RELEVANCE_LEVELS
from momentseek.core.errors import MomentseekError
from momentseek.core.moments.judgements import MAX_RELEVANCE
from momentseek.core.reports import count
from momentseek.search.hit import Results
from momentseek.search.query import MAX_CHARACTERS, Query
from momentseek.server.errors import BODY_ERRORS, ConflictError, change_errors, error_responses
from momentseek.server.judging.annotate import (
    DEFAULT_DEPTH,
    MAX_BATCHES,
    QueryState,
    SecondBatch,
    create_query,
    next_task,
    query_states,
    refuse_duplicate,
    save_judgement,
    undo_last,
)
from momentseek.server.judging.consensus import AnnotatorRule
from momentseek.server.judging.searches import SearchSetup, find_hits, pool_setups, resolve_setup
from momentseek.server.judging.store import JudgementStore, RuleSetting, with_store
from momentseek.server.schemas import StrictBody, StrictModel, clean_text, example, media_url, same_fields
from momentseek.server.security.users import MAX_NAME_CHARACTERS, own_name
from momentseek.server.service import ServiceParam

router = APIRouter(prefix="/judging", tags=["judging"])
Id = Annotated[int, Field(ge=1, le=2**53)]
QueryId = Annotated[int, InPath(ge=1, le=2**53, description="The query's id.", examples=[1])]
Annotator = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        description="A name of 1 to 64 printable characters; must be your own if people have their own tokens.",
        examples=["ann"],
    ),
    AfterValidator(own_name),
]
Relevance = Annotated[int, Field(ge=0, le=MAX_RELEVANCE)]


class QueryOut(BaseModel):
    """A query and how far its judging has got."""

    model_config = example({
        "id": 1, "text": "a dog runs", "depth": 20, "batch": 1, "candidates": 20,
        "judged": {"ann": 20, "bob": 12}, "kept": 11, "discarded": 0, "waiting": 9, "removed": 0,
        "open": 9, "disputed": 1, "second_batch": "waiting",
        "reason": "9 of the first batch still need annotators", "created": 1760000000.0,
    })  # fmt: skip
    id: int
    text: str
    depth: int = Field(description="Number of moments in a batch.")
    batch: int = Field(description="2 once the second batch is being judged as well.")
    candidates: int = Field(description="Number of moments to judge.")
    judged: dict[str, int] = Field(description="Annotator → number of moments they have judged.")
    kept: int = Field(description="Number of moments on whose level the annotators agree.")
    discarded: int = Field(description="Number of moments on which four annotators do not agree.")
    waiting: int = Field(description="Number of moments that need more annotators.")
    removed: int = Field(description="How many of those belong to videos that are no longer in the library.")
    open: int = Field(description="Number of moments that need more annotators and can be shown.")
    disputed: int = Field(description="How many of those the first two annotators disagree on.")
    second_batch: SecondBatch = Field(description="Whether a second batch of moments is judged.")
    reason: str = Field(description="Why a second batch is judged or not.")
    created: float = Field(description="When the query was added, in seconds since 1970.")


def query_out(state: QueryState) -> QueryOut:
    """Convert the state of a query to the API's answer."""
    return QueryOut(
        **same_fields(QueryOut, state.row),
        batch=state.row.batches,
        candidates=len(state.moments),
        judged=dict(state.judged),
        kept=state.count("kept"),
        discarded=state.count("discarded"),
        waiting=state.count("waiting"),
        removed=state.count_removed(),
        open=len(state.open_pairs),
        disputed=state.count_disputed(),
        second_batch=state.second_batch,
        reason=state.reason,
    )


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
    """The annotator, and candidates to leave for later."""

    skip: Annotated[list[Id], Field(max_length=100, default_factory=list, description="Candidates to skip for now.")]


class NextOut(BaseModel):
    """The next moment to judge."""

    model_config = example({
        "query": "a dog runs",
        "candidate": {"id": 9, "video_id": 7, "start": 3.0, "end": 9.0, "media": "/api/v1/videos/7/media"},
        "left": 8, "done": 12, "total": 20, "removed": 0, "note": "",
    })  # fmt: skip
    query: str
    candidate: CandidateOut | None = Field(
        description="Null if only skipped candidates, or none, are left for this annotator."
    )
    left: int
    done: int
    total: int
    removed: int = Field(
        description="Number of moments that cannot be shown because their video was removed or its file cannot be read."
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
    """A judgement that was saved."""

    before: int | None = Field(description="The level that the same annotator gave before.")
    outcome: Literal["kept", "discarded", "waiting"] = Field(description="The outcome for the moment.")
    state: QueryOut = Field(description="How far the judging of the query has got.")


class UndoneJudgementOut(JudgementOut):
    """A judgement that was undone."""

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
        with JudgementStore(service.database) as store:
            task = next_task(store, library.store.catalog, id, given.annotator, given.skip)
            words = store.query(id).text
        one, video = task.candidate, task.video_id
        shown = None
        if one is not None and video is not None:
            shown = CandidateOut(id=one.id, video_id=video, start=one.start, end=one.end, media=media_url(video))
        hidden = f"{count(task.hidden, 'moment')} cannot be shown: removed from the library, or the file cannot be read"
        return NextOut(
            query=words,
            candidate=shown,
            left=task.left,
            done=task.done,
            total=task.done + task.left,
            removed=task.hidden,
            note=hidden if task.hidden else "",
        )

    return await service.readers.run(read)


@router.put("/judgements", summary="Judge a moment", responses=change_errors(404, 409))
async def put_judgement(service: ServiceParam, given: JudgementIn) -> SavedJudgementOut:
    """Judge how relevant a moment is. An annotator's latest judgement counts; earlier ones stay in the history."""

    def save(library: Library) -> SavedJudgementOut:
        with JudgementStore(service.database) as store:
            saved = save_judgement(
                store, library.store.catalog, given.query, given.candidate, given.annotator, given.relevance
            )
        return SavedJudgementOut(
            **same_fields(JudgementOut, saved.judgement),
            before=saved.before,
            outcome=saved.pair.outcome,  # type: ignore[arg-type]
            state=query_out(*query_states(library, service.database, given.query)),
        )

    return await service.readers.run(save)


@router.delete("/judgements/last", summary="Undo", responses=change_errors(404))
async def delete_last(service: ServiceParam, given: Annotated[AnnotatorIn, InQuery()]) -> UndoneJudgementOut:
    """Undo an annotator's last judgement; each further call undoes one more."""

    def undo(library: Library) -> UndoneJudgementOut:
        with JudgementStore(service.database) as store:
            last, now = undo_last(store, library.store.catalog, given.annotator)
        return UndoneJudgementOut(
            **same_fields(JudgementOut, last),
            now=now,
            state=query_out(*query_states(library, service.database, last.query)),
        )

    return await service.readers.run(undo)


@router.get("/guideline", summary="How to judge")
async def guideline(service: ServiceParam) -> GuidelineOut:
    """The five levels of relevance, and when to choose each."""
    levels = [LevelOut(**same_fields(LevelOut, level)) for level in RELEVANCE_LEVELS]
    return GuidelineOut(levels=levels, instructions=INSTRUCTIONS, example=EXAMPLE_JUDGEMENTS)


class QueryIn(StrictBody):
    """A query whose moments will be judged."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS, examples=["a dog runs"])]
    depth: Annotated[int, Field(ge=1, le=50, description="Number of moments in a batch.")] = DEFAULT_DEPTH


class QueriesOut(BaseModel):
    """All queries, oldest first."""

    queries: list[QueryOut]


@router.get("/queries", summary="Queries to judge")
async def queries(service: ServiceParam) -> QueriesOut:
    """All queries and how far the judging of each has got."""
    return await service.readers.run(
        lambda library: QueriesOut(queries=[query_out(one) for one in query_states(library, service.database)])
    )


@router.post("/queries", status_code=201, summary="Add a query to judge", responses=change_errors(409))
async def add_query(service: ServiceParam, given: QueryIn) -> QueryOut:
    """Add a query with its candidates: the moments that the default search and its variants find, each once."""
    query = Query.parse(given.text)
    words = clean_text(str(query))
    await service.readers.run(with_store(service.database, lambda store: refuse_duplicate(store, words)))
    lists: list[Results] = []
    default = await resolve_setup(service, SearchSetup())
    localisers = await service.readers.run(lambda library: library.engine.localisers)
    for setup in pool_setups(
        default.localiser, localisers, service.comparisons.names
    ):  # one search at a time, so that other people's searches get their turn
        try:
            lists.append((await find_hits(service, setup, query, MAX_BATCHES * given.depth)).hits)
        except MomentseekError:
            if not lists:  # an error of the default search; a variant may merely lack its encoder
                raise

    def save(library: Library) -> QueryOut:
        with JudgementStore(service.database, create=True) as store:
            new = create_query(store, library.store.catalog, words, lists, given.depth)
        return query_out(*query_states(library, service.database, new))

    return await service.readers.run(save)


@router.delete("/queries/{id}", summary="Remove a query", responses=change_errors(404, 409))
async def remove_query(service: ServiceParam, id: QueryId) -> QueryOut:
    """Remove a query that nobody has judged yet."""

    def remove(library: Library) -> QueryOut:
        removed = query_out(*query_states(library, service.database, id))
        with JudgementStore(service.database) as store, store.changes():
            if store.judgements(id):
                raise ConflictError(f"moments of query {id} have been judged, so it cannot be removed")
            store.remove_query(id)
        return removed

    return await service.readers.run(remove)


class RuleIn(StrictBody):
    """The rule to judge by."""

    setting: RuleSetting = Field(description="`auto` means `one` until a second person judges, and `two` from then on.")


class RuleOut(BaseModel):
    """The rule in force, the setting, and who has judged."""

    model_config = example({"rule": "one", "setting": "auto", "annotators": ["ann"]})
    rule: AnnotatorRule = Field(
        description="`one`: one judgement is enough; `two`: two judgements, or four if the first two disagree."
    )
    setting: RuleSetting
    annotators: list[str] = Field(description="Everybody who has judged a moment.")


@router.get("/rule", summary="How many annotators")
async def rule(service: ServiceParam) -> RuleOut:
    """The number of annotators who must judge each moment."""
    return await service.readers.run(with_store(service.database, _rule_out))


@router.put("/rule", summary="Set how many annotators", responses=BODY_ERRORS)
async def put_rule(service: ServiceParam, given: RuleIn) -> RuleOut:
    """Set the rule: one annotator, two (four if they disagree, as in TVR-Ranking), or automatic."""

    def save(library: Library) -> RuleOut:
        with JudgementStore(service.database, create=True) as store:
            with store.changes():
                store.set_rule(given.setting)
            return _rule_out(store)

    return await service.readers.run(save)


def _rule_out(store: JudgementStore) -> RuleOut:
    with store.view():
        return RuleOut(rule=store.rule(), setting=store.rule_setting(), annotators=store.annotators())
