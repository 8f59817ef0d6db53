"""The application: routes, error handlers and security around one library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import anyio.to_thread
from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute

from momentseek import __version__
from momentseek.api import Library, open_library
from momentseek.errors import MomentseekError
from momentseek.search.rerank import open_reranker
from momentseek.search.shards.fan_out import FanOut
from momentseek.server import errors, page, reference
from momentseek.server.database import DatabasePlace
from momentseek.server.judging.store import JudgementStore
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
    status,
    thumbnails,
    videos,
)
from momentseek.server.schemas import API
from momentseek.server.security import protect
from momentseek.server.service import Service
from momentseek.server.settings import ServerSettings

ROUTERS = (
    status.router,
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
"""The routes below ``/api/v1``; a new resource is one line here."""


def create_app(library: Path, settings: ServerSettings | None = None, fan_out: FanOut | None = None) -> FastAPI:
    """Create the application that serves the library in a folder, which must exist; ``fan_out`` is a way to ask its
    shards elsewhere than in this process.
    """
    settings = settings or ServerSettings()
    with open_library(library, create=False) as opened:
        for folder in settings.rerank:
            # open it now, so that a model that does not fit is refused now
            open_reranker(folder, opened.catalog, opened.clip_seconds)
    if settings.database is not None:  # one that cannot be used is refused now
        JudgementStore(DatabasePlace(library, settings.database), create=True).close()
    app = FastAPI(
        title="Momentseek",
        version=__version__,
        summary="Search for moments in videos, and export them.",
        lifespan=_lifespan,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        routes=list(_routes()),
    )
    service = app.state.service = Service.of(library, settings, fan_out)
    errors.install_handlers(app)
    protect(app, settings, service.sessions)
    return app


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """The routes of every application of this process: they ask a request for its library, so they are made once."""
    routes = APIRouter()
    for router in ROUTERS:
        routes.include_router(router, prefix=API, responses=errors.COMMON_ERRORS)
    routes.include_router(login.router, responses=errors.error_responses(400, 403, 422))
    routes.include_router(reference.router, prefix=API)
    routes.include_router(page.router())
    return tuple(routes.routes)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the encoders in the background, so that the first search need not wait; finish writes at the end."""
    service: Service = app.state.service
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_warm_up, service)
        yield
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(service.close)


async def _warm_up(service: Service) -> None:
    def load(library: Library) -> None:
        with suppress(Exception):  # the first real search reports it; an error here must not end the server
            if library.catalog.totals()["videos"]:
                library.search("a warm welcome", 1)

    with suppress(errors.ApiError, MomentseekError):
        await service.searchers.run(load)
