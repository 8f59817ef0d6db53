"""Request bodies: small, prompt and of the right type, before the application sees their first byte."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from momentseek.server.errors import ApiError
from momentseek.server.settings import Limits

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
JSON_MEDIA_TYPE = "application/json"


class ClientGoneError(Exception):
    """The client hung up before its request was complete."""


class BodyMiddleware:
    """Reads the whole body of a request within limits of size and time, then passes it on.

    A request that changes something must come as ``application/json``, which another site's form cannot send, or,
    without a body, from our own page: browsers then send the origin, which has been checked before.
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


_CLOSE_HEADER = {"Connection": "close"}


def check_media_type(headers: Headers) -> None:
    """Refuse a request that changes something unless it is JSON, or has no body and comes from our own page."""
    kind = headers.get("content-type")
    if kind is not None and kind.partition(";")[0].strip().lower() == JSON_MEDIA_TYPE:
        return
    empty = headers.get("content-length", "0").strip("0") == "" and "transfer-encoding" not in headers
    if kind is None and empty and ("origin" in headers or headers.get("sec-fetch-site") == "same-origin"):
        return
    raise ApiError(415, "a request that changes something must have Content-Type: application/json; set that header")
