"""Routes to measure a search by the judgements, to see what annotators agree on, and to export both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator
from starlette.responses import Response

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.measuring.formats import FORMATS
from momentseek.measuring.reliability import ReliabilityBin
from momentseek.search.confidence import LEVELS
from momentseek.search.hit import Level
from momentseek.server.errors import error_responses
from momentseek.server.files import attachment, file_responses
from momentseek.server.judging.annotate import QueryState, SecondBatch, read_states
from momentseek.server.judging.consensus import AnnotatorRule, consensus_statistics
from momentseek.server.judging.evaluation import (
    DEFAULT_MEASURE,
    DEFAULT_VIDEO_URL,
    HITS_PER_QUERY,
    ONE_ANNOTATOR_NOTE,
    judged_levels,
    label_studio_files,
    parse_measure,
    read_truth,
    tvr_ranking_files,
    zip_files,
)
from momentseek.server.judging.searches import (
    SearchSetup,
    find_judged_hits,
    left_out_note,
    measure_setup,
    resolve_setup,
    search_judged_queries,
)
from momentseek.server.judging.store import JudgementStore, with_store
from momentseek.server.schemas import (
    ALL_STREAMS,
    EncoderName,
    FusionName,
    LocaliserName,
    StreamNames,
    StrictModel,
    example,
    same_fields,
)
from momentseek.server.service import ServiceParam

router = APIRouter(prefix="/judging", tags=["judging"])
MeasureName = Annotated[str, Field(min_length=1, max_length=100, description="A measure (docs/measures.md).")]
Kind = Literal["tvr-ranking", "label-studio", "jsonl", "run"]
EXPORTS = {
    "tvr-ranking": ("application/zip", "tvr-ranking.zip"),
    "label-studio": ("application/zip", "label-studio.zip"),
    "jsonl": ("application/jsonl", "truth.jsonl"),
    "run": ("application/json", "run.json"),
}
"""Kind → media type and name of the file."""
EXPORT_RESPONSES = {
    **file_responses("The file.", "application/zip", "application/jsonl"),
    **error_responses(409),
}


def _normalise_setup(value: str) -> str:
    try:
        return str(SearchSetup.parse(value))
    except MomentseekError as e:
        raise ValueError(str(e)) from None


def finite_or_none(value: float | None) -> float | None:
    """The value if JSON can carry it; None for NaN and infinity.

    >>> finite_or_none(0.5), finite_or_none(float("nan")), finite_or_none(float("inf"))
    (0.5, None, None)
    """
    return value if value is not None and math.isfinite(value) else None


Finite = Annotated[float | None, BeforeValidator(finite_or_none)]
"""A number, or null for NaN and infinity, which JSON cannot carry."""
SetupText = Annotated[
    str,
    Field(
        max_length=300,
        description="For example `localiser=scenes;streams=vision,speech;fusion=rrf;encoder=labels`; "
        "missing settings have their defaults.",
    ),
    AfterValidator(_normalise_setup),
]


class SetupIn(StrictModel):
    """The setup of the search to measure."""

    localiser: LocaliserName = ""
    streams: StreamNames = ALL_STREAMS
    fusion: FusionName = SearchSetup.fusion
    encoder: EncoderName = ""
    all: Annotated[bool, Field(description="Count weak hits too, so that the whole ranking is measured.")] = True

    @model_validator(mode="after")
    def _check_setup(self) -> SetupIn:
        try:
            self.setup()
        except MomentseekError as e:
            raise ValueError(str(e)) from None
        return self

    def setup(self) -> SearchSetup:
        """The setup of the search that is measured."""
        return SearchSetup.of(self.localiser, self.streams, "true" if self.all else "false", self.fusion, self.encoder)


class EvaluationIn(SetupIn):
    """The setup of the search to measure, and the measure."""

    measure: MeasureName = DEFAULT_MEASURE


class QueryValueOut(BaseModel):
    """The value of a measure for one query."""

    query: int
    text: str
    value: Finite = Field(description="Null if the query does not count for this measure.")


class EvaluationOut(BaseModel):
    """A measure of a search, as `momentseek evaluate` computes it."""

    model_config = example({
        "measure": DEFAULT_MEASURE, "settings": str(SearchSetup("scenes")), "value": 0.61, "low": 0.52,
        "high": 0.7, "queries": 12, "moments": 231, "waiting": 4, "missing": 0, "judged": 0.83,
        "rule": "two", "notes": [], "per_query": [{"query": 1, "text": "a dog runs", "value": 0.61}],
    })  # fmt: skip
    measure: str
    settings: str
    value: Finite = Field(description="The mean over the queries that count.")
    low: Finite = Field(description="Lower end of its 95 % bootstrap interval.")
    high: Finite
    queries: int
    moments: int = Field(description="Number of judged moments over all queries.")
    waiting: int = Field(description="Number of moments that still need annotators and do not count yet.")
    missing: int = Field(description="Number of queries for which the search finds nothing; they count as 0.")
    judged: Finite = Field(
        description="Share of the moments found that have been judged; the others count as not relevant."
    )
    rule: AnnotatorRule = Field(description="`one` annotator's judgements, or those on which `two` agree.")
    notes: list[str]
    per_query: list[QueryValueOut]


@router.get("/evaluation", summary="Measure a search", responses=error_responses(409))
async def evaluation(service: ServiceParam, given: Annotated[EvaluationIn, InQuery()]) -> EvaluationOut:
    """A measure of a search on all judged queries."""
    measure = parse_measure(given.measure)
    truth = await service.readers.run(with_store(service.database, read_truth))
    setup = await resolve_setup(service, given.setup())
    measured = await measure_setup(service, truth, setup, measure)
    result, judgements = measured.evaluation, truth.judgements
    return EvaluationOut(
        measure=measure.name,
        settings=str(setup),
        value=measured.value,
        low=measured.low,
        high=measured.high,
        queries=len(judgements),
        moments=len(judgements.relevance),
        waiting=truth.waiting,
        missing=len(result.missing),
        judged=next(iter(result.judged.values()), None),
        rule=truth.rule,
        notes=list(result.notes),
        per_query=[
            QueryValueOut(query=int(id), text=words, value=value)
            for id, words, value in zip(
                judgements.query_ids, judgements.queries or (), result.values[:, 0].tolist(), strict=True
            )
        ],
    )


class LevelShareOut(BaseModel):
    """How many hits of a level are right, by the judgements."""

    level: Level
    right: int = Field(description="Number of hits on moments of relevance 3 or 4.")
    judged: int = Field(description="Number of hits on moments that have been judged.")
    share: float | None = Field(description="Share of the judged hits that are right; null if none were judged.")
    low: float = Field(description="Lower end of its 95 % interval (Wilson's).")
    high: float


class ReliabilityOut(BaseModel):
    """The reliability of the levels: how often a strong, a fair and a weak hit is right."""

    model_config = example({
        "settings": str(SearchSetup("height")), "queries": 12, "unjudged": 31, "rule": "one", "notes": [],
        "first": [{"level": "strong", "right": 6, "judged": 7, "share": 0.86, "low": 0.49, "high": 0.97}],
        "every": [{"level": "strong", "right": 9, "judged": 12, "share": 0.75, "low": 0.47, "high": 0.91}],
    })  # fmt: skip
    settings: str
    queries: int
    first: list[LevelShareOut] = Field(description="Of the first hit of each query; the most confident level first.")
    every: list[LevelShareOut] = Field(description="Of the first ten hits of each query.")
    unjudged: int = Field(description="Number of hits on moments that nobody has judged; they do not count.")
    rule: AnnotatorRule = Field(description="`one` annotator's judgements, or those on which `two` agree.")
    notes: list[str]


@router.get("/reliability", summary="Check the levels", responses=error_responses(409))
async def reliability(service: ServiceParam, given: Annotated[SetupIn, InQuery()]) -> ReliabilityOut:
    """How often a strong, a fair and a weak hit of a search is right, on all judged queries."""
    truth = await service.readers.run(with_store(service.database, read_truth))
    setup = await resolve_setup(service, given.setup())
    answers, left_out = await find_judged_hits(service, truth, setup, HITS_PER_QUERY)
    found = judged_levels(truth, answers)
    notes = [ONE_ANNOTATOR_NOTE] if truth.rule == "one" else []
    return ReliabilityOut(
        settings=str(setup),
        queries=len(truth.judgements),
        first=_level_shares(found.first),
        every=_level_shares(found.every),
        unjudged=found.unjudged,
        rule=truth.rule,
        notes=[*notes, *([left_out_note(left_out, setup)] if left_out else [])],
    )


def _level_shares(bins: list[ReliabilityBin]) -> list[LevelShareOut]:
    """The shares by level, the most confident level first."""
    return [
        LevelShareOut(
            level=level, right=found.right, judged=found.count, share=found.share,
            low=found.interval[0], high=found.interval[1],
        )
        for level, found in reversed(list(zip(LEVELS, bins, strict=True)))
    ]  # fmt: skip


EXPORT_RESPONSES[200]["content"]["application/json"] = {"schema": {"type": "object"}}


class JudgementExportIn(EvaluationIn):
    """The kind of file; for `run`, also the setup of the search and the measure."""

    kind: Kind
    base_url: Annotated[
        str, Field(max_length=500, description="Where Label Studio finds the videos.", examples=[DEFAULT_VIDEO_URL])
    ] = DEFAULT_VIDEO_URL


class LabelOut(BaseModel):
    """The level that one annotator gave."""

    annotator: str
    relevance: int


class PairOut(BaseModel):
    """A candidate moment with its labels and the outcome."""

    candidate: int
    pair_id: str = Field(description="The id of the pair of query and moment in exported files.")
    outcome: Literal["kept", "discarded", "waiting"]
    reason: str
    relevance: int | None
    needs: int = Field(description="Number of annotators who still have to judge it.")
    removed: bool = Field(description="Whether its video is no longer in the library.")
    labels: list[LabelOut]


class QueryConsensusOut(BaseModel):
    """A query with its candidate moments."""

    id: int
    text: str
    kept: int
    discarded: int
    waiting: int
    second_batch: SecondBatch = Field(description="Whether a second batch of moments is judged.")
    reason: str = Field(description="Why a second batch is judged or not.")
    pairs: list[PairOut]


class ConsensusOut(BaseModel):
    """Every query with its moments, and statistics of the agreement."""

    queries: list[QueryConsensusOut]
    statistics: dict[str, Any] | None = Field(
        description="The report of `momentseek data consensus --json`; null while no moment has two labels."
    )


@router.get("/consensus", summary="What annotators agree on")
async def consensus(service: ServiceParam) -> ConsensusOut:
    """Every moment with its labels and level, which ones need annotators, and how far annotators agree."""

    def work(library: Library) -> ConsensusOut:
        states, judgements = read_states(library, service.database)
        return ConsensusOut(
            queries=[_query_consensus(one) for one in states], statistics=consensus_statistics(judgements)
        )

    return await service.readers.run(work)


def _query_consensus(state: QueryState) -> QueryConsensusOut:
    return QueryConsensusOut(
        id=state.row.id,
        text=state.row.text,
        kept=state.count("kept"),
        discarded=state.count("discarded"),
        waiting=state.count("waiting"),
        second_batch=state.second_batch,
        reason=state.reason,
        pairs=[
            PairOut(
                **same_fields(PairOut, one)
                | {
                    "candidate": c.id,
                    "pair_id": c.pair,
                    "removed": c.video not in state.present,
                    "labels": [LabelOut(annotator=who, relevance=level) for who, level in one.labels],
                }
            )
            for c, one in state.moments
        ],
    )


@router.get("/export", summary="Judgements as files", responses=EXPORT_RESPONSES, response_class=Response)
async def export(service: ServiceParam, given: Annotated[JudgementExportIn, InQuery()]) -> Response:
    """TVR-Ranking's files (zip), Label Studio's (zip), the native format (JSON Lines), or the run of a search."""
    if given.kind == "run":
        measure = parse_measure(given.measure)
        truth = await service.readers.run(with_store(service.database, read_truth))
        run, _ = await search_judged_queries(service, truth, await resolve_setup(service, given.setup()), measure)
        data = FORMATS["tvr-ranking-predictions"].to_bytes((run,))
    else:
        makers: dict[str, Callable[[JudgementStore], bytes]] = {
            "tvr-ranking": lambda store: zip_files(tvr_ranking_files(store)),
            "label-studio": lambda store: zip_files(label_studio_files(store, given.base_url)),
            "jsonl": lambda store: FORMATS["native"].to_bytes(read_truth(store).judgements),
        }
        data = await service.readers.run(with_store(service.database, makers[given.kind]))
    return attachment(data, *EXPORTS[given.kind])
