"""What stands between the network and the application: pure ASGI middlewares, each with one duty."""

from __future__ import annotations

from fastapi import FastAPI

from momentseek.server.security.bodies import Bodies
from momentseek.server.security.headers import Headers
from momentseek.server.security.hosts import Hosts
from momentseek.server.security.net import Net
from momentseek.server.security.tokens import Keys, Tokens
from momentseek.server.settings import Settings

__all__ = ["Bodies", "Headers", "Hosts", "Keys", "Net", "Tokens", "protect"]


def protect(app: FastAPI, settings: Settings, keys: Keys) -> None:
    """Put the middlewares around an application; the last one added is the first to see a request."""
    app.add_middleware(Bodies, limits=settings.limits)
    app.add_middleware(Tokens, keys=keys)
    app.add_middleware(Hosts, settings=settings)
    app.add_middleware(Net)
    app.add_middleware(Headers)
