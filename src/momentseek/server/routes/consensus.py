"""What annotators agree on, and exporting it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, Field
from starlette.responses import Response

from momentseek.api import Library
from momentseek.server.errors import error_responses
from momentseek.server.files import content_disposition
from momentseek.server.judging.consensus import consensus_statistics
from momentseek.server.judging.evaluation import parse_measure, read_truth
from momentseek.server.judging.export import (
    DEFAULT_VIDEO_URL,
    label_studio_files,
    run_json,
    truth_lines,
    tvr_ranking_files,
    zip_files,
)
from momentseek.server.judging.schemas import EvaluationIn
from momentseek.server.judging.searches import resolve_setup, search_judged_queries
from momentseek.server.judging.states import QueryState, SecondBatch, read_states
from momentseek.server.judging.store import JudgementStore, with_store
from momentseek.server.service import ServiceParam

router = APIRouter(prefix="/judging", tags=["judging"])

Kind = Literal["tvr-ranking", "label-studio", "jsonl", "run"]
EXPORT_MEDIA_TYPES: dict[str, str] = {
    "tvr-ranking": "application/zip",
    "label-studio": "application/zip",
    "jsonl": "application/jsonl",
    "run": "application/json",
}
EXPORT_FILE_NAMES: dict[str, str] = {
    "tvr-ranking": "tvr-ranking.zip",
    "label-studio": "label-studio.zip",
    "jsonl": "truth.jsonl",
    "run": "run.json",
}
_FILE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            kind: {"schema": {"type": "object"} if kind.endswith("/json") else {"type": "string", "format": "binary"}}
            for kind in EXPORT_MEDIA_TYPES.values()
        },
    },
    **error_responses(409),
}


class JudgementExportIn(EvaluationIn):
    """The kind of file; for `run` also the search and the measure it is for."""

    kind: Kind
    base_url: Annotated[
        str, Field(max_length=500, description="Where Label Studio finds the videos.", examples=[DEFAULT_VIDEO_URL])
    ] = DEFAULT_VIDEO_URL


class LabelOut(BaseModel):
    """The level that one annotator gave."""

    annotator: str
    relevance: int


class PairOut(BaseModel):
    """A candidate moment with its labels and what became of it."""

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
        states, judgements = read_states(library, service.place)
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
                candidate=c.id,
                pair_id=c.pair,
                outcome=one.outcome,  # type: ignore[arg-type]
                reason=one.reason,
                relevance=one.relevance,
                needs=one.needs,
                removed=c.video not in state.present,
                labels=[LabelOut(annotator=who, relevance=level) for who, level in one.labels],
            )
            for c, one in state.moments
        ],
    )


@router.get("/export", summary="Judgements as files", responses=_FILE_RESPONSES, response_class=Response)
async def export(service: ServiceParam, given: Annotated[JudgementExportIn, InQuery()]) -> Response:
    """TVR-Ranking's files (zip), Label Studio's (zip), the native format (JSON Lines), or the run of a search."""
    if given.kind == "run":
        measure = parse_measure(given.measure)
        truth = await service.readers.run(with_store(service.place, read_truth))
        run, _ = await search_judged_queries(service, truth, await resolve_setup(service, given.setup()), measure)
        data = run_json(run)
    else:
        makers: dict[str, Callable[[JudgementStore], bytes]] = {
            "tvr-ranking": lambda store: zip_files(tvr_ranking_files(store)),
            "label-studio": lambda store: zip_files(label_studio_files(store, given.base_url)),
            "jsonl": lambda store: truth_lines(read_truth(store).judgements),
        }
        data = await service.readers.run(with_store(service.place, makers[given.kind]))
    headers = {"Content-Disposition": content_disposition(EXPORT_FILE_NAMES[given.kind])}
    return Response(data, media_type=EXPORT_MEDIA_TYPES[given.kind], headers=headers)
