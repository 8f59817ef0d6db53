"""Unexpected exceptions: one line in the log and a plain answer, never a traceback to the client."""

from __future__ import annotations

import logging
import traceback

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from momentseek.server.errors import ApiError

log = logging.getLogger("momentseek.server")


class FaultMiddleware:
    """Catches exceptions that nothing else caught, and refuses WebSockets.

    The log gets the kind of the exception and where it arose, but no message, query or header: these may contain what
    somebody searched for.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except ApiError as e:
            if not started:
                await e.response()(scope, receive, send)
        except Exception as e:
            log.error("error in %s %s: %s at %s", scope["method"], _route(scope), type(e).__name__, _place(e))
            if not started:
                answer = ApiError(500, "an error in the server; its log says where, please report it")
                await answer.response()(scope, receive, send)


def _route(scope: Scope) -> str:
    route = scope.get("route")
    return str(getattr(route, "path", "an unknown address"))


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in reversed(frames[-3:]))
