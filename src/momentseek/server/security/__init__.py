"""What stands between the network and the application: ASGI middlewares, each with one duty."""

from __future__ import annotations

from fastapi import FastAPI

from momentseek.server.security.middleware import BodyMiddleware, FaultMiddleware, HeadersMiddleware, HostMiddleware
from momentseek.server.security.sessions import Sessions, TokenMiddleware
from momentseek.server.settings import ServerSettings

__all__ = [
    "BodyMiddleware",
    "HeadersMiddleware",
    "HostMiddleware",
    "Sessions",
    "FaultMiddleware",
    "TokenMiddleware",
    "protect",
]


def protect(app: FastAPI, settings: ServerSettings, sessions: Sessions) -> None:
    """Put the middlewares around an application; the last one added sees a request first."""
    app.add_middleware(BodyMiddleware, limits=settings.limits)
    app.add_middleware(TokenMiddleware, sessions=sessions)
    app.add_middleware(HostMiddleware, settings=settings)
    app.add_middleware(FaultMiddleware)
    app.add_middleware(HeadersMiddleware)
