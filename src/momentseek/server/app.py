"""The application: routes, error handlers and security around one library."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread
from fastapi import FastAPI

from momentseek import __version__
from momentseek.api.library import Library, open_store
from momentseek.cluster.shard_client import ShardClient
from momentseek.core.errors import MomentseekError
from momentseek.search.rerank import open_reranker
from momentseek.server import errors, page
from momentseek.server.database import DatabaseLocation
from momentseek.server.judging.store import JudgementStore
from momentseek.server.routes import (
    adding,
    bookmarks,
    compare,
    evaluation,
    export,
    judging,
    login,
    media,
    search,
    videos,
)
from momentseek.server.routes import (
    library as library_routes,
)
from momentseek.server.schemas import API
from momentseek.server.security.middleware import protect
from momentseek.server.service import Service
from momentseek.server.settings import ServerSettings, seconds_until

log = logging.getLogger("momentseek.server")

API_ROUTERS = (
    library_routes.router,
    search.router,
    videos.router,
    media.router,
    export.router,
    adding.router,
    bookmarks.router,
    judging.router,
    evaluation.router,
    compare.router,
)
"""The routes below ``/api/v1``; a new subject is one line here."""
WARM_UP_SECONDS = 0.3
"""How long after the start to wait before loading encoders, so that the first request is answered quickly."""


def create_app(
    library: Path, settings: ServerSettings | None = None, shard_client: ShardClient | None = None
) -> FastAPI:
    """Create the application that serves the library in a folder, which must exist.

    ``shard_client`` reaches shards of the library outside this process.
    """
    settings = settings or ServerSettings()
    with Library.open(library, create=False) as opened:
        for folder in settings.rerank:  # refuse a model that does not fit before serving
            open_reranker(folder, opened.store.catalog, opened.store.clip_seconds)
    if settings.database is not None:  # refuse an unusable database before serving
        JudgementStore(DatabaseLocation(library, settings.database), create=True).close()
    app = FastAPI(
        title="Momentseek",
        version=__version__,
        summary="Search for moments in videos, and export them.",
        lifespan=_lifespan,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    service = app.state.service = Service(library, settings, shard_client)
    for router in API_ROUTERS:
        app.include_router(router, prefix=API, responses=errors.COMMON_ERRORS)
    app.include_router(login.router, responses=errors.error_responses(400, 403, 422))
    app.include_router(page.manual_router, prefix=API)
    app.include_router(page.page_router())
    errors.install_handlers(app)
    protect(app, settings, service.sessions)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the encoders in the background; at shutdown, finish all writes."""
    service: Service = app.state.service
    async with anyio.create_task_group() as tasks:
        if service.search_processes is None:
            tasks.start_soon(_warm_up, service)
        if service.settings.watch:
            service.jobs.watch(service.roots)
        if service.settings.scrub_at is not None:
            threading.Thread(
                target=_scrub, args=(service.database.folder, service.settings.scrub_at), daemon=True
            ).start()
        yield
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(service.close)


def _scrub(library: Path, clock: str) -> None:
    """Read and check the whole library each night, slowly; log what is wrong. An interrupted check continues later."""
    while True:
        time.sleep(seconds_until(clock, time.localtime()))
        try:
            with open_store(library, create=False) as store:
                problems = store.scrub().problems
        except MomentseekError as e:
            problems = [str(e)]
        for text in problems:
            log.error("%s; run: momentseek verify --repair", text)


async def _warm_up(service: Service) -> None:
    await anyio.sleep(WARM_UP_SECONDS)

    def load(library: Library) -> None:
        with suppress(Exception):  # the first real search reports it; an error here must not end the server
            if library.store.catalog.totals()["videos"]:
                library.search("a warm welcome", 1)

    with suppress(errors.ApiError, MomentseekError):
        await service.searchers.run(load)
