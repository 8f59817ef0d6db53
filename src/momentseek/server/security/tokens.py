"""Who may ask: a token in a header for programs, a session and its cookie for the page."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote_plus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from momentseek.server.errors import ApiError
from momentseek.server.security.throttle import Throttle
from momentseek.server.settings import Settings

COOKIE_SECONDS = 7 * 24 * 3600
MOST_SESSIONS = 1000
"""That are open; a new one then ends the oldest."""
SECRET_KEYS = frozenset({"token", "access_token", "auth", "authorization", "bearer", "api_key", "apikey", "password"})


class Tokens:
    """Asks for the token on everything below ``/api/``, if there is one; refuses secrets in addresses always."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app = app
        self.keys = keys

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
    """The token, and the sessions it opened: a cookie holds a random id, and only the server knows which ids count.

    So leaving ends a session wherever its cookie was copied to, and a restart ends them all.

    >>> keys = Keys(Settings(token="correct horse battery"))
    >>> keys.right("correct horse battery"), keys.right("wrong horse")
    (True, False)
    >>> cookie = keys.open(now=100.0)
    >>> keys.valid(cookie, now=200.0), keys.valid(cookie, now=1e9), keys.valid("made up", now=200.0)
    (True, False, False)
    >>> keys.end([cookie])
    >>> keys.valid(cookie, now=200.0)
    False
    """

    def __init__(self, settings: Settings) -> None:
        self.token = settings.token
        self.name = f"momentseek-{settings.port}"
        self.tries = Throttle()
        self._until: dict[bytes, float] = {}
        """Digest of a session's id → when it ends; the oldest first."""

    def known(self, headers: Headers) -> bool:
        """Whether a request shows the token or the cookie of a session."""
        if self.token is None:
            return True
        given = headers.get("authorization")
        if given is not None:
            scheme, _, token = given.partition(" ")
            return scheme.lower() == "bearer" and self.right(token.strip())
        return any(self.valid(cookie, time.time()) for cookie in self.shown(headers))

    def shown(self, headers: Headers) -> list[str]:
        """The cookies of ours that a request shows."""
        return _cookies("; ".join(headers.getlist("cookie")), self.name)

    def right(self, token: str) -> bool:
        """Compared in constant time."""
        return self.token is None or hmac.compare_digest(_digest(token), _digest(self.token))

    def open(self, now: float) -> str:
        """Begin a session; its cookie, in which nothing can be read."""
        for id in [id for id, until in self._until.items() if until <= now]:
            del self._until[id]
        while len(self._until) >= MOST_SESSIONS:
            del self._until[next(iter(self._until))]
        cookie = secrets.token_urlsafe(32)
        self._until[_digest(cookie)] = now + COOKIE_SECONDS
        return cookie

    def valid(self, cookie: str, now: float) -> bool:
        """Whether it is that of a session that has not ended; looked up by digest, so timing tells nothing of ids."""
        return now < self._until.get(_digest(cookie), 0.0)

    def end(self, cookies: Iterable[str]) -> None:
        """End their sessions, for good."""
        for cookie in cookies:
            self._until.pop(_digest(cookie), None)

    def inside(self, *texts: str) -> bool:
        """Whether the token itself stands in a text."""
        return self.token is not None and any(self.token in text for text in texts)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _cookies(header: str, name: str) -> list[str]:
    """Every value of a cookie; those of other programs on the same host may look like anything.

    >>> _cookies('odd"{one}; é; a=1;b = 2; a=3', "a")
    ['1', '3']
    """
    pairs = (part.partition("=") for part in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]
