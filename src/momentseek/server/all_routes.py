"""All routes of the server that are loaded after its start; see :mod:`momentseek.server.late_routes`."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter
from starlette.routing import BaseRoute

from momentseek.server import errors, reference
from momentseek.server.routes import (
    compare,
    consensus,
    cues,
    curve,
    encoders,
    evaluation,
    examples,
    export,
    folders,
    jobs,
    judgements,
    login,
    media,
    moments,
    previews,
    queries,
    rule,
    search,
    shelf,
    thumbnails,
    videos,
)
from momentseek.server.schemas import API

ROUTERS = (
    search.router,
    examples.router,
    curve.router,
    videos.router,
    cues.router,
    moments.router,
    media.router,
    previews.router,
    thumbnails.router,
    export.router,
    folders.router,
    encoders.router,
    jobs.router,
    queries.router,
    rule.router,
    shelf.router,
    judgements.router,
    consensus.router,
    evaluation.router,
    compare.router,
)
"""The routes below ``/api/v1`` but that of the server's state; a new resource is one line here."""


@cache
def other_routes() -> tuple[BaseRoute, ...]:
    """The routes of every application of this process: they ask a request for its library, so they are made once."""
    routes = APIRouter()
    for router in ROUTERS:
        routes.include_router(router, prefix=API, responses=errors.COMMON_ERRORS)
    routes.include_router(login.router, responses=errors.error_responses(400, 403, 422))
    routes.include_router(reference.router, prefix=API)
    return tuple(routes.routes)
