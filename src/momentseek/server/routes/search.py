"""Searching for moments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as InQuery
from pydantic import BaseModel, Field

from momentseek.api import Library
from momentseek.server.answers import HitOut, hit_out, text
from momentseek.server.asked import Asked, AskedInAddress, AskedInBody, search
from momentseek.server.errors import CHANGING
from momentseek.server.marks import said
from momentseek.server.service import Service, Serving

router = APIRouter(tags=["search"])


class SearchOut(BaseModel):
    """Moments, best first."""

    query: str = Field(description="The query as it was understood.")
    took: float = Field(description="Milliseconds of searching.")
    total: int = Field(description="Moments known so far: up to this page, and one more if there are more.")
    more: bool = Field(description="Whether there is another page.")
    hidden: int = Field(description="Weak moments that `all` would add.")
    note: str = Field(description="What a person should know about the answer; often nothing.")
    hits: list[HitOut]


@router.get("/search", summary="Search")
async def search_get(service: Serving, asked: Annotated[AskedInAddress, InQuery()]) -> SearchOut:
    """The moments that fit a query, best first."""
    return await _answer(service, asked)


@router.post("/search", summary="Search, with a body", responses=CHANGING)
async def search_post(service: Serving, asked: AskedInBody) -> SearchOut:
    """As GET; the query does not stand in the address."""
    return await _answer(service, asked)


async def _answer(service: Service, asked: Asked) -> SearchOut:
    def work(library: Library) -> SearchOut:
        page = search(library, asked, service.settings.rerankers)
        results = page.results
        return SearchOut(
            query=text(str(results.query)),
            took=1000 * results.took,
            total=page.total,
            more=page.more,
            hidden=page.hidden,
            note=results.note,
            hits=[hit_out(hit, words) for hit, words in zip(page.hits, said(page.hits, results.query), strict=True)],
        )

    return await service.searchers.run(work)
