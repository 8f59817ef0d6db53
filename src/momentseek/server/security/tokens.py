"""Who may ask: a token in a header for programs, a cookie made from it for the page."""

from __future__ import annotations

import hashlib
import hmac
import time
from urllib.parse import parse_qsl, unquote_plus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from momentseek.server.errors import ApiError
from momentseek.server.settings import Settings

COOKIE_SECONDS = 7 * 24 * 3600
SECRET_KEYS = frozenset({"token", "access_token", "auth", "authorization", "bearer", "api_key", "apikey", "password"})


class Tokens:
    """Asks for the token on everything below ``/api/``, if there is one; refuses secrets in addresses always."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.keys = Keys(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.check_address(scope)
            # the rest are the page's own files, which hold nothing of anybody's, and the way in
            private = scope["path"].startswith("/api")
            if private and not self.keys.known(Headers(scope=scope)):
                raise ApiError(
                    401,
                    "a token is needed; send it as 'Authorization: Bearer TOKEN', or open the page and enter it",
                    headers={"WWW-Authenticate": 'Bearer realm="momentseek"'},
                )
        await self.app(scope, receive, send)

    def check_address(self, scope: Scope) -> None:
        """Addresses end up in histories and logs."""
        query = scope["query_string"].decode("latin-1")
        names = {key.strip().lower() for key, _ in parse_qsl(query, keep_blank_values=True)}
        if names & SECRET_KEYS or self.keys.inside(query, unquote_plus(query), scope["path"]):
            raise ApiError(
                400,
                "a token does not belong into an address; send it as 'Authorization: Bearer TOKEN'",
                code="token_in_address",
            )


class Keys:
    """The token, and the cookies it makes.

    >>> keys = Keys(Settings(token="correct horse battery"))
    >>> keys.right("correct horse battery"), keys.right("wrong horse")
    (True, False)
    >>> keys.valid(keys.cookie(now=100.0), now=200.0), keys.valid(keys.cookie(now=0.0), now=1e9)
    (True, False)
    """

    def __init__(self, settings: Settings) -> None:
        self.token = settings.token
        self.name = f"momentseek-{settings.port}"
        self._key = hashlib.sha256(b"momentseek cookie:" + (settings.token or "").encode()).digest()

    def known(self, headers: Headers) -> bool:
        """Whether a request shows the token or a cookie made from it."""
        if self.token is None:
            return True
        given = headers.get("authorization")
        if given is not None:
            scheme, _, token = given.partition(" ")
            return scheme.lower() == "bearer" and self.right(token.strip())
        shown = _cookies("; ".join(headers.getlist("cookie")), self.name)
        return any(self.valid(cookie, time.time()) for cookie in shown)

    def right(self, token: str) -> bool:
        """Compared in constant time."""
        return self.token is None or hmac.compare_digest(_digest(token), _digest(self.token))

    def cookie(self, now: float) -> str:
        """When it ends, and a proof that we made it; the token itself is not in it."""
        until = str(int(now) + COOKIE_SECONDS)
        return f"{until}.{self._proof(until)}"

    def valid(self, cookie: str, now: float) -> bool:
        """Whether we made it and it has not ended."""
        until, _, proof = cookie.partition(".")
        real = hmac.compare_digest(_digest(proof), _digest(self._proof(until)))
        return real and until.isascii() and until.isdigit() and len(until) < 16 and now < int(until)

    def inside(self, *texts: str) -> bool:
        """Whether the token itself stands in a text."""
        return self.token is not None and any(self.token in text for text in texts)

    def _proof(self, until: str) -> str:
        return hmac.new(self._key, until.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _cookies(header: str, name: str) -> list[str]:
    """Every value of a cookie; those of other programs on the same host may look like anything.

    >>> _cookies('odd"{one}; é; a=1;b = 2; a=3', "a")
    ['1', '3']
    """
    pairs = (part.partition("=") for part in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]
