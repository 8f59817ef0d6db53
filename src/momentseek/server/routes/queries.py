"""The queries whose moments are judged."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from momentseek.api import Library
from momentseek.errors import MomentseekError
from momentseek.search import Results
from momentseek.search.query import MAX_CHARACTERS, Query
from momentseek.server.answers import Body, text
from momentseek.server.errors import CHANGING, documented
from momentseek.server.found import find, resolved
from momentseek.server.judging.answers import QueryId, QueryOut, query_out
from momentseek.server.judging.candidates import BATCHES, DEPTH, create, refuse_again
from momentseek.server.judging.errors import RefusedError
from momentseek.server.judging.setup import Setup, pooled
from momentseek.server.judging.states import states
from momentseek.server.judging.store import Store, reading
from momentseek.server.service import Serving

router = APIRouter(prefix="/judging", tags=["judging"])


class QueryIn(Body):
    """A query to be judged."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS, examples=["a dog runs"])]
    depth: Annotated[int, Field(ge=1, le=50, description="Moments of a batch.")] = DEPTH


class QueriesOut(BaseModel):
    """All queries, the oldest first."""

    queries: list[QueryOut]


@router.get("/queries", summary="Queries to judge")
async def queries(service: Serving) -> QueriesOut:
    """All queries and how far each is."""
    return await service.readers.run(lambda library: QueriesOut(queries=[query_out(one) for one in states(library)]))


@router.post("/queries", status_code=201, summary="Have a query judged", responses={**documented(409), **CHANGING})
async def add_query(service: Serving, given: QueryIn) -> QueryOut:
    """Make a query with its candidates: what the search finds with every setting of one kind, each moment once."""
    query = Query.parse(given.text)
    words = text(str(query))
    await service.readers.run(reading(lambda store: refuse_again(store, words)))
    lists: list[Results] = []
    usual = await resolved(service, Setup())
    for setup in pooled(
        usual.localiser, service.beside.names
    ):  # one search at a time, so that others' searches take their turns
        try:
            lists.append((await find(service, setup, query, BATCHES * given.depth)).hits)
        except MomentseekError:
            if not lists:  # what the usual search refuses; another may only lack an encoder
                raise

    def keep(library: Library) -> QueryOut:
        with Store(library.path, create=True) as store:
            new = create(store, library.catalog, words, lists, given.depth)
        return query_out(*states(library, new))

    return await service.readers.run(keep)


@router.delete("/queries/{id}", summary="Remove a query", responses={**documented(404, 409), **CHANGING})
async def remove_query(service: Serving, id: QueryId) -> QueryOut:
    """Take away a query that nobody has judged yet."""

    def remove(library: Library) -> QueryOut:
        gone = query_out(*states(library, id))
        with Store(library.path) as store, store.changes():
            if store.judgements(id):
                raise RefusedError(f"moments of query {id} have been judged; what people said is not thrown away")
            store.remove_query(id)
        return gone

    return await service.readers.run(remove)
