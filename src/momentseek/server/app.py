"""The application: routes, error handlers and security around one library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from momentseek import __version__
from momentseek.api.library import Library, open_library
from momentseek.core.errors import MomentseekError
from momentseek.search.rerank import open_reranker
from momentseek.server import errors, page, reference
from momentseek.server.database import DatabaseLocation
from momentseek.server.judging.store import JudgementStore
from momentseek.server.routes import adding as folders
from momentseek.server.routes import adding as jobs
from momentseek.server.routes import bookmarks as shelf
from momentseek.server.routes import compare, encoders, evaluation, export, login, media, search, status, videos
from momentseek.server.routes import evaluation as consensus
from momentseek.server.routes import judging as judgements
from momentseek.server.routes import judging as queries
from momentseek.server.routes import judging as rule
from momentseek.server.routes import media as previews
from momentseek.server.routes import media as thumbnails
from momentseek.server.routes import search as curve
from momentseek.server.routes import search as examples
from momentseek.server.routes import videos as cues
from momentseek.server.routes import videos as moments
from momentseek.server.schemas import API
from momentseek.server.security import protect
from momentseek.server.service import Service
from momentseek.server.settings import ServerSettings

if TYPE_CHECKING:
    from momentseek.cluster.search.shard_client import ShardClient


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


class LateRoutes(BaseRoute):
    """Stands at the end of an application's routes for others that take a while to load.

    A request that nothing before it can answer waits until they are there, and goes to them.
    """

    def __init__(self, load: Callable[[], Sequence[BaseRoute]]) -> None:
        self._load = load
        self._lock: anyio.Lock | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Any request might be meant for one of the routes."""
        return (Match.FULL if scope["type"] == "http" else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by the routes that stand in for this one from now on."""
        app: FastAPI = scope["app"]
        await self.settle(app)
        await app.router.app(scope, receive, send)

    async def settle(self, app: FastAPI) -> None:
        """Load the routes, in a thread, and put them in the place of this one."""
        self._lock = self._lock or anyio.Lock()
        async with self._lock:
            if self in app.router.routes:
                routes = await anyio.to_thread.run_sync(self._load)
                place = app.router.routes.index(self)
                app.router.routes[place : place + 1] = routes


TITLE, SUMMARY = "Momentseek", "Search for moments in videos, and export them."
WARM_UP_SECONDS = 0.3
"""Time after the start in which whoever waits for the first answer has the processor for it."""


def create_app(library: Path, settings: ServerSettings | None = None, fan_out: ShardClient | None = None) -> FastAPI:
    """Create the application that serves the library in a folder, which must exist; ``fan_out`` is a way to ask its
    shards elsewhere than in this process.
    """
    settings = settings or ServerSettings()
    with open_library(library, create=False) as opened:
        for folder in settings.rerank:
            # open it now, so that a model that does not fit is refused now
            open_reranker(folder, opened.catalog, opened.clip_seconds)
    if settings.database is not None:  # one that cannot be used is refused now
        JudgementStore(DatabaseLocation(library, settings.database), create=True).close()
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
