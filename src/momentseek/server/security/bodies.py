"""Bodies: small, prompt and of the right kind, before the application sees the first byte of them."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from momentseek.server.errors import ApiError
from momentseek.server.settings import Limits

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
JSON = "application/json"


class Gone(Exception):
    """The client hung up."""


class Bodies:
    """Reads a body whole, within a size and a time; then hands it on.

    What changes something must come as ``application/json``, which another site's form cannot send, or, without a
    body, from our own page: browsers then say the origin, which has been checked before.
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
        if scope["method"] not in SAFE:
            check_kind(headers)
        try:
            body = await asyncio.wait_for(self.read(receive), self.limits.body_seconds)
        except Gone:
            return
        except TimeoutError:
            raise ApiError(
                408, f"the body did not come within {self.limits.body_seconds:g} s; send it again", headers=_CLOSE
            ) from None
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    def check_length(self, headers: Headers) -> None:
        """Refuse by the length announced, before reading."""
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise ApiError(400, "the length of the body is no number; check the request")
        if len(length) > 12 or int(length) > self.limits.body:
            raise self.too_large()

    def too_large(self) -> ApiError:
        """With the bound."""
        return ApiError(413, f"the body has more than {self.limits.body:,} bytes; send less", headers=_CLOSE)

    async def read(self, receive: Receive) -> bytes:
        """All of the body."""
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self.limits.body:
                raise self.too_large()
            if not message.get("more_body", False):
                return b"".join(pieces)


_CLOSE = {"Connection": "close"}


def check_kind(headers: Headers) -> None:
    """JSON; or nothing, from our own page."""
    kind = headers.get("content-type")
    if kind is not None and kind.partition(";")[0].strip().lower() == JSON:
        return
    empty = headers.get("content-length", "0").strip("0") == "" and "transfer-encoding" not in headers
    if kind is None and empty and ("origin" in headers or headers.get("sec-fetch-site") == "same-origin"):
        return
    raise ApiError(415, "what changes something must come as Content-Type: application/json; set that header")
