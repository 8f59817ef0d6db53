"""What annotators agree on, and taking it away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, Field
from starlette.responses import Response

from momentseek.api import Library
from momentseek.server.errors import documented
from momentseek.server.files import disposition
from momentseek.server.found import resolved
from momentseek.server.judging.asked import MeasuredIn
from momentseek.server.judging.consensus import statistics
from momentseek.server.judging.evaluation import judged, measure_of
from momentseek.server.judging.export import VIDEOS, label_studio, run_json, truth_lines, tvr_ranking, zipped
from momentseek.server.judging.measuring import searched
from momentseek.server.judging.states import Batch, QueryState, look
from momentseek.server.judging.store import Store, reading
from momentseek.server.service import Serving

router = APIRouter(prefix="/judging", tags=["judging"])

Kind = Literal["tvr-ranking", "label-studio", "jsonl", "run"]
TYPES: dict[str, str] = {
    "tvr-ranking": "application/zip",
    "label-studio": "application/zip",
    "jsonl": "application/jsonl",
    "run": "application/json",
}
NAMES: dict[str, str] = {
    "tvr-ranking": "tvr-ranking.zip",
    "label-studio": "label-studio.zip",
    "jsonl": "truth.jsonl",
    "run": "run.json",
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            kind: {"schema": {"type": "object"} if kind.endswith("/json") else {"type": "string", "format": "binary"}}
            for kind in TYPES.values()
        },
    },
    **documented(409),
}


class ExportIn(MeasuredIn):
    """The kind of file; of `run` also which search, and the measure it is for."""

    kind: Kind
    base_url: Annotated[
        str, Field(max_length=500, description="Where Label Studio finds the videos.", examples=[VIDEOS])
    ] = VIDEOS


class LabelOut(BaseModel):
    """One annotator's level."""

    annotator: str
    relevance: int


class PairOut(BaseModel):
    """A moment and what became of it."""

    candidate: int
    pair_id: str = Field(description="As exported files call it.")
    outcome: Literal["kept", "discarded", "waiting"]
    reason: str
    relevance: int | None
    needs: int = Field(description="Annotators who have not judged it yet and should.")
    removed: bool = Field(description="Whether its video is no longer in the library.")
    labels: list[LabelOut]


class QueryConsensus(BaseModel):
    """The moments of a query."""

    id: int
    text: str
    kept: int
    discarded: int
    waiting: int
    second_batch: Batch = Field(description="Whether 20 more moments are judged.")
    reason: str = Field(description="Why so.")
    pairs: list[PairOut]


class ConsensusOut(BaseModel):
    """What annotators agree on."""

    queries: list[QueryConsensus]
    statistics: dict[str, Any] | None = Field(
        description="The report of `momentseek data consensus --json`; null while no moment has two labels."
    )


@router.get("/consensus", summary="What annotators agree on")
async def consensus(service: Serving) -> ConsensusOut:
    """Every moment with its labels and level; which ones need annotators, and how far people agree."""

    def work(library: Library) -> ConsensusOut:
        found, said = look(library)
        return ConsensusOut(queries=[_query(one) for one in found], statistics=statistics(said))

    return await service.readers.run(work)


def _query(state: QueryState) -> QueryConsensus:
    return QueryConsensus(
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
                removed=c.video not in state.here,
                labels=[LabelOut(annotator=who, relevance=level) for who, level in one.labels],
            )
            for c, one in state.moments
        ],
    )


@router.get("/export", summary="Judgements as files", responses=_FILE, response_class=Response)
async def export(service: Serving, given: Annotated[ExportIn, InQuery()]) -> Response:
    """TVR-Ranking's files (zip), Label Studio's (zip), our own truth (JSON Lines), or the run of a search."""
    if given.kind == "run":
        measure = measure_of(given.measure)
        known = await service.readers.run(reading(judged))
        run, _ = await searched(service, known, await resolved(service, given.setup()), measure)
        data = run_json(run)
    else:
        makers: dict[str, Callable[[Store], bytes]] = {
            "tvr-ranking": lambda store: zipped(tvr_ranking(store)),
            "label-studio": lambda store: zipped(label_studio(store, given.base_url)),
            "jsonl": lambda store: truth_lines(judged(store).truth),
        }
        data = await service.readers.run(reading(makers[given.kind]))
    headers = {"Content-Disposition": disposition(NAMES[given.kind])}
    return Response(data, media_type=TYPES[given.kind], headers=headers)
