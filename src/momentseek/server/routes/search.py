"""Searching for moments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, Field

from momentseek.server.errors import BODY_ERRORS
from momentseek.server.hits import HitOut, hits_out
from momentseek.server.schemas import clean_text
from momentseek.server.search_requests import ResultPage, SearchBodyIn, SearchIn, SearchParametersIn, search_page
from momentseek.server.service import Service, ServiceParam

router = APIRouter(tags=["search"])


class SearchOut(BaseModel):
    """One page of hits, best match first."""

    query: str = Field(description="The query as it was understood.")
    took_seconds: float = Field(description="Seconds of searching.")
    took: float = Field(
        description="Milliseconds of searching; use `took_seconds`.", json_schema_extra={"deprecated": True}
    )
    total: int = Field(description="Hits known so far: up to the end of this page, and one more if there are more.")
    more: bool = Field(description="Whether there is another page.")
    hidden: int = Field(description="Number of weak hits that `all` would add, on whatever page; 20 means 20 or more.")
    note: str = Field(description="What a person should know about the answer; usually empty.")
    unfamiliar: list[str] = Field(
        description="Words for which the encoder of pictures has no label; empty if it does not work by labels."
    )
    complete: bool = Field(True, description="Whether all of the library was searched.")
    missing: list[str] = Field([], description="Shards of the library that did not answer.")
    hits: list[HitOut]


@router.get("/search", summary="Search")
async def search_get(service: ServiceParam, asked: Annotated[SearchParametersIn, InQuery()]) -> SearchOut:
    """The moments that match a query, best match first."""
    return await _answer(service, asked)


@router.post("/search", summary="Search, with a body", responses=BODY_ERRORS)
async def search_post(service: ServiceParam, asked: SearchBodyIn) -> SearchOut:
    """Search as with GET, with the query in the body instead of the address."""
    return await _answer(service, asked)


async def _answer(service: Service, asked: SearchIn) -> SearchOut:
    return await service.searchers.run(
        lambda library: search_out(search_page(library, asked, service.settings.rerankers))
    )


def search_out(page: ResultPage) -> SearchOut:
    """Convert a page of hits to the API's answer."""
    results = page.results
    return SearchOut(
        query=clean_text(str(results.query)),
        took_seconds=results.took,
        took=1000 * results.took,
        total=page.total,
        more=page.more,
        hidden=page.hidden,
        note=results.note,
        unfamiliar=list(results.unfamiliar),
        complete=results.complete,
        missing=list(results.missing),
        hits=hits_out(page.hits, results.query),
    )
