"""The queries whose moments are judged."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from momentseek.api import Library
from momentseek.errors import MomentseekError
from momentseek.search import Results
from momentseek.search.query import MAX_CHARACTERS, Query
from momentseek.server.errors import BODY_ERRORS, ConflictError, error_responses
from momentseek.server.judging.candidates import DEFAULT_DEPTH, MAX_BATCHES, create_query, refuse_duplicate
from momentseek.server.judging.schemas import QueryId, QueryOut, query_out
from momentseek.server.judging.searches import find_hits, resolve_setup
from momentseek.server.judging.setup import SearchSetup, pool_setups
from momentseek.server.judging.states import query_states
from momentseek.server.judging.store import JudgementStore, with_store
from momentseek.server.schemas import StrictBody, clean_text
from momentseek.server.service import ServiceParam

router = APIRouter(prefix="/judging", tags=["judging"])


class QueryIn(StrictBody):
    """A query whose moments are to be judged."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS, examples=["a dog runs"])]
    depth: Annotated[int, Field(ge=1, le=50, description="Moments in a batch.")] = DEFAULT_DEPTH


class QueriesOut(BaseModel):
    """All queries, oldest first."""

    queries: list[QueryOut]


@router.get("/queries", summary="Queries to judge")
async def queries(service: ServiceParam) -> QueriesOut:
    """All queries and how far the judging of each has got."""
    return await service.readers.run(
        lambda library: QueriesOut(queries=[query_out(one) for one in query_states(library, service.place)])
    )


@router.post(
    "/queries", status_code=201, summary="Add a query to judge", responses={**error_responses(409), **BODY_ERRORS}
)
async def add_query(service: ServiceParam, given: QueryIn) -> QueryOut:
    """Add a query with its candidates: what the default search and its variants find, each moment once."""
    query = Query.parse(given.text)
    words = clean_text(str(query))
    await service.readers.run(with_store(service.place, lambda store: refuse_duplicate(store, words)))
    lists: list[Results] = []
    default = await resolve_setup(service, SearchSetup())
    localisers = await service.readers.run(lambda library: library.localisers)
    for setup in pool_setups(
        default.localiser, localisers, service.companions.names
    ):  # one search at a time, so that others' searches take their turns
        try:
            lists.append((await find_hits(service, setup, query, MAX_BATCHES * given.depth)).hits)
        except MomentseekError:
            if not lists:  # an error of the default search; a variant may merely lack its encoder
                raise

    def save(library: Library) -> QueryOut:
        with JudgementStore(service.place, create=True) as store:
            new = create_query(store, library.catalog, words, lists, given.depth)
        return query_out(*query_states(library, service.place, new))

    return await service.readers.run(save)


@router.delete("/queries/{id}", summary="Remove a query", responses={**error_responses(404, 409), **BODY_ERRORS})
async def remove_query(service: ServiceParam, id: QueryId) -> QueryOut:
    """Remove a query that nobody has judged yet."""

    def remove(library: Library) -> QueryOut:
        removed = query_out(*query_states(library, service.place, id))
        with JudgementStore(service.place) as store, store.changes():
            if store.judgements(id):
                raise ConflictError(f"moments of query {id} have been judged; so it is kept")
            store.remove_query(id)
        return removed

    return await service.readers.run(remove)
