"""LateRoutes: routes that are loaded when the server has started, or when one of them is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import anyio.to_thread
from fastapi import FastAPI
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send


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
