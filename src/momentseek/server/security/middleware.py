"""ASGI middlewares: they check hosts and origins, read bodies, add security headers and catch exceptions."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import traceback

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from momentseek.core.errors import LibraryError
from momentseek.server.errors import ApiError, api_error
from momentseek.server.security.sessions import Sessions, TokenMiddleware
from momentseek.server.settings import Limits, ServerSettings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
JSON_MEDIA_TYPE = "application/json"
_CLOSE_HEADER = {"Connection": "close"}
log = logging.getLogger("momentseek.server")
CONTENT_SECURITY_POLICY = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "connect-src 'self'",
    "font-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
))  # fmt: skip
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?")


class ClientGoneError(Exception):
    """The client hung up before its request was complete."""


class BodyMiddleware:
    """Reads the whole body of a request within limits of size and time, then passes it on.

    A request that changes something must be ``application/json``, which a form on another site cannot send. Without a
    body it must come from our own page: browsers then send the origin, which has already been checked.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app = app
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        self.check_length(headers)
        if scope["method"] not in SAFE_METHODS:
            check_media_type(headers)
        try:
            body = await asyncio.wait_for(self.read_body(receive), self.limits.body_seconds)
        except ClientGoneError:
            return
        except TimeoutError:
            raise ApiError(
                408,
                f"the body did not arrive within {self.limits.body_seconds:g} s; send it again",
                headers=_CLOSE_HEADER,
            ) from None
        replayed = False

        async def replay() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    def check_length(self, headers: Headers) -> None:
        """Refuse a body by its announced length, before reading it."""
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise ApiError(400, "the length of the body is not a number; check the request")
        if len(length) > 12 or int(length) > self.limits.body:
            raise self.too_large()

    def too_large(self) -> ApiError:
        """The error that says how large a body may be."""
        return ApiError(413, f"the body has more than {self.limits.body:,} bytes; send less", headers=_CLOSE_HEADER)

    async def read_body(self, receive: Receive) -> bytes:
        """Read the whole body."""
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self.limits.body:
                raise self.too_large()
            if not message.get("more_body", False):
                return b"".join(pieces)


def check_media_type(headers: Headers) -> None:
    """Refuse a request that changes something unless it is JSON, or has no body and comes from our own page."""
    kind = headers.get("content-type")
    if kind is not None and kind.partition(";")[0].strip().lower() == JSON_MEDIA_TYPE:
        return
    empty = headers.get("content-length", "0").strip("0") == "" and "transfer-encoding" not in headers
    if kind is None and empty and ("origin" in headers or headers.get("sec-fetch-site") == "same-origin"):
        return
    raise ApiError(415, "a request that changes something must have Content-Type: application/json; set that header")


class FaultMiddleware:
    """Catches exceptions that nothing else caught, and refuses WebSockets.

    The log gets the type of the exception and where it was raised, but no message, query or header, because these may
    contain what somebody searched for.
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
        except (ApiError, LibraryError) as e:  # LibraryError: users or sessions cannot be read
            if not started:
                await api_error(e).response()(scope, receive, send)
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


class HeadersMiddleware:
    """Adds the security headers to every response, and forbids caching where a response does not allow it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, add)


class HostMiddleware:
    """Refuses requests for other host names, and from other origins."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app = app
        self.names = settings.host_names
        self.any_address = settings.wildcard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            self.check_host(headers)
            check_origin(headers)
            check_site(scope["method"], headers)
        await self.app(scope, receive, send)

    def check_host(self, headers: Headers) -> None:
        """Refuse a request unless it has exactly one ``Host`` header, with an allowed name."""
        given = headers.getlist("host")
        name = host_name(given[0]) if len(given) == 1 else None
        if name is None or not (name in self.names or (self.any_address and _is_address(name))):
            raise ApiError(
                403,
                "this host name is not allowed; use the address that the server printed, "
                "or start it with --allowed-host NAME",
                code="wrong_host",
            )


def host_name(host: str) -> str | None:
    """The name in a ``Host`` header, in lower case, without port and brackets; None if it is malformed.

    >>> host_name("LocalHost:8765"), host_name("[::1]:80"), host_name("a b")
    ('localhost', '::1', None)
    """
    match = _HOST.fullmatch(host)
    return match["name"].lower().strip("[]") if match else None


def check_origin(headers: Headers) -> None:
    """Refuse a request whose ``Origin`` is not the very host and port that it is sent to."""
    for origin in headers.getlist("origin"):
        scheme, separator, rest = origin.partition("://")
        if not separator or scheme not in ("http", "https") or rest.lower() != headers.get("host", "").lower():
            raise ApiError(403, "the request comes from another site; open this server's own page", code="wrong_origin")


def check_site(method: str, headers: Headers) -> None:
    """Refuse a request that, according to the browser, another site made, unless a person followed a link."""
    site = headers.get("sec-fetch-site", "none").lower()
    if site in ("none", "same-origin"):
        return
    followed = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if not (followed and method == "GET"):
        raise ApiError(403, "the request comes from another site; open this server's own page", code="wrong_origin")


def _is_address(name: str) -> bool:
    """Whether a host is an IP address, which DNS rebinding cannot fake."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def protect(app: FastAPI, settings: ServerSettings, sessions: Sessions) -> None:
    """Put the middlewares around an application; the last one added sees a request first."""
    app.add_middleware(BodyMiddleware, limits=settings.limits)
    app.add_middleware(TokenMiddleware, sessions=sessions)
    app.add_middleware(HostMiddleware, settings=settings)
    app.add_middleware(FaultMiddleware)
    app.add_middleware(HeadersMiddleware)
