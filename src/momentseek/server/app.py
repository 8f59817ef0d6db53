"""The application: routes, error handlers and security around one library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from momentseek import __version__
from momentseek.api import Library, open_library
from momentseek.errors import MomentseekError
from momentseek.server import errors, page
from momentseek.server.database import DatabasePlace
from momentseek.server.late_routes import LateRoutes
from momentseek.server.routes import status
from momentseek.server.schemas import API
from momentseek.server.security import protect
from momentseek.server.service import Service
from momentseek.server.settings import ServerSettings

if TYPE_CHECKING:
    from momentseek.search.shards.fan_out import FanOut

TITLE, SUMMARY = "Momentseek", "Search for moments in videos, and export them."
WARM_UP_SECONDS = 0.3
"""Time after the start in which whoever waits for the first answer has the processor for it."""


def create_app(library: Path, settings: ServerSettings | None = None, fan_out: FanOut | None = None) -> FastAPI:
    """Create the application that serves the library in a folder, which must exist; ``fan_out`` is a way to ask its
    shards elsewhere than in this process.
    """
    settings = settings or ServerSettings()
    with open_library(library, create=False) as opened:
        for folder in settings.rerank:
            from momentseek.search.rerank import open_reranker

            # open it now, so that a model that does not fit is refused now
            open_reranker(folder, opened.catalog, opened.clip_seconds)
    if settings.database is not None:  # one that cannot be used is refused now
        from momentseek.server.judging.store import JudgementStore

        JudgementStore(DatabasePlace(library, settings.database), create=True).close()
    others = LateRoutes(_other_routes)
    app = _Application(
        title=TITLE,
        version=__version__,
        summary=SUMMARY,
        lifespan=_lifespan,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        routes=[*_first_routes(), others],
    )
    service = app.state.service = Service.of(library, settings, fan_out)
    app.state.others = others
    errors.install_handlers(app)
    protect(app, settings, service.sessions)
    return app


class _Application(FastAPI):
    """An application of a process in which all have the same routes, and so one OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        """The document of all routes, loaded or not."""
        return _document()


@cache
def _document() -> dict[str, Any]:
    return get_openapi(
        title=TITLE,
        version=__version__,
        summary=SUMMARY,
        routes=[*_first_routes(), *_other_routes()],
        separate_input_output_schemas=False,
    )


@cache
def _first_routes() -> tuple[BaseRoute, ...]:
    """What a server answers before all else is loaded: its state, and the files of the page."""
    routes = APIRouter()
    routes.include_router(status.router, prefix=API, responses=errors.COMMON_ERRORS)
    routes.include_router(page.router())
    return tuple(routes.routes)


def _other_routes() -> tuple[BaseRoute, ...]:
    from momentseek.server.all_routes import other_routes

    return other_routes()


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load all routes and the encoders in the background, so that nobody need wait; finish writes at the end."""
    service: Service = app.state.service
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_warm_up, app)
        yield
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(service.close)


async def _warm_up(app: FastAPI) -> None:
    await anyio.sleep(WARM_UP_SECONDS)
    others: LateRoutes = app.state.others
    await others.settle(app)
    service: Service = app.state.service

    def load(library: Library) -> None:
        with suppress(Exception):  # the first real search reports it; an error here must not end the server
            if library.catalog.totals()["videos"]:
                library.search("a warm welcome", 1)

    with suppress(errors.ApiError, MomentseekError):
        await service.searchers.run(load)
