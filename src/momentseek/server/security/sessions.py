"""Access control: a token in a header for programs, a session with a cookie for the page.

Clients are identified by their addresses, and may only try a few wrong tokens. Sessions are kept in this process, or in
a database that several servers share.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import secrets
import time
from collections import deque
from collections.abc import Iterable
from typing import Literal, Protocol
from urllib.parse import parse_qsl, unquote_plus

import anyio.to_thread
from sqlalchemy import Column, Double, MetaData, Table, Text, delete, insert, select
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from momentseek.server.database import DatabaseLocation, ServerDatabase
from momentseek.server.errors import ApiError
from momentseek.server.security.users import ANYBODY, CALLER, Users
from momentseek.server.settings import ServerSettings

IPV6_NETWORK_BITS = 64
"""Prefix length of an IPv6 network that counts as one client, because one home usually has a whole /64."""
WINDOW_SECONDS = 60.0
"""How long a wrong token counts."""
MAX_WRONG_PER_CLIENT = 5
MAX_WRONG_IN_TOTAL = 50
"""Limits on wrong tokens, of one client and of all together, because an attacker may have many addresses."""
MAX_KNOWN_CLIENTS = 1000
"""Largest number of clients remembered for having sent the right token."""
MAX_SESSIONS = 1000
"""Largest number of open sessions; a further one ends the oldest."""
TABLES = MetaData()
SESSIONS = Table("sessions", TABLES, Column("key", Text, primary_key=True), Column("until", Double, nullable=False))
COOKIE_SECONDS = 7 * 24 * 3600
SECRET_PARAMETERS = frozenset(
    {"token", "access_token", "auth", "authorization", "bearer", "api_key", "apikey", "password"}
)


def client_of(scope: Scope) -> str:
    """The client that sent a request, by its address."""
    client = scope.get("client")
    return client_name(client[0] if client else "")


def client_name(host: str) -> str:
    """The name of a client with an address: the address itself, or the network of an IPv6 address.

    >>> client_name("192.0.2.7"), client_name("2001:db8:1:2:a:b:c:d"), client_name("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, IPV6_NETWORK_BITS), strict=False))
    return str(address)


class Throttle:
    """Counts recent wrong tokens, and says which clients must wait.

    For a client that has once sent the right token only its own tries count, so that strangers cannot lock it out.

    >>> tries = Throttle()
    >>> for second in range(5):
    ...     tries.note_wrong("192.0.2.7", now=float(second))
    >>> [tries.seconds_to_wait(f"192.0.2.{n}", now=now) for n, now in ((7, 10.0), (8, 10.0), (7, 60.0))]
    [50, 0, 0]
    """

    def __init__(self) -> None:
        self._wrong: deque[tuple[float, str]] = deque()
        """Time and client of wrong tokens, oldest first; a client that must wait adds none, so the list stays short."""
        self._known: dict[str, None] = {}

    def seconds_to_wait(self, client: str, now: float) -> int:
        """Whole seconds until a client may try again; 0 if it may now."""
        while self._wrong and self._wrong[0][0] <= now - WINDOW_SECONDS:
            self._wrong.popleft()
        full = [
            tries[-most]
            for tries, most in (
                ([] if client in self._known else [at for at, _ in self._wrong], MAX_WRONG_IN_TOTAL),
                ([at for at, who in self._wrong if who == client], MAX_WRONG_PER_CLIENT),
            )
            if len(tries) >= most
        ]
        return max(1, math.ceil(max(full) + WINDOW_SECONDS - now)) if full else 0

    def note_wrong(self, client: str, now: float) -> None:
        """Note a wrong try of a client."""
        self._wrong.append((now, client))

    def note_right(self, client: str) -> None:
        """Note that a client had the right token."""
        self._known.pop(client, None)
        self._known[client] = None
        while len(self._known) > MAX_KNOWN_CLIENTS:
            del self._known[next(iter(self._known))]


class SessionStore(Protocol):
    """Knows which sessions are open, by a digest of their cookies."""

    def add(self, key: str, end: float, now: float) -> None:
        """Store a session until its end, in seconds since 1970; delete those that have ended."""
        ...

    def end_of(self, key: str) -> float:
        """When a session ends; 0 if there is none."""
        ...

    def drop(self, key: str) -> None:
        """Delete a session."""
        ...


class MemorySessions:
    """The sessions of one process; they end with it.

    >>> kept = MemorySessions()
    >>> kept.add("a", end=100.0, now=10.0)
    >>> kept.end_of("a"), kept.end_of("b")
    (100.0, 0.0)
    >>> kept.add("b", end=300.0, now=200.0)
    >>> kept.end_of("a")
    0.0
    """

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}
        """Digest of a session's id → when it ends; oldest first."""

    def add(self, key: str, end: float, now: float) -> None:
        """Store a session until its end; delete those that have ended, and the oldest if there are too many."""
        for old in [old for old, until in self._ends.items() if until <= now]:
            del self._ends[old]
        while len(self._ends) >= MAX_SESSIONS:
            del self._ends[next(iter(self._ends))]
        self._ends[key] = end

    def end_of(self, key: str) -> float:
        """When a session ends; 0 if there is none."""
        return self._ends.get(key, 0.0)

    def drop(self, key: str) -> None:
        """Delete a session."""
        self._ends.pop(key, None)


class _SessionDatabase(ServerDatabase):
    """The open database of sessions; keys are digests, so that nobody can read a cookie from the table."""

    name, contents, migrations = "sessions", "sessions", (TABLES.create_all,)


class SharedSessions:
    """The sessions of all servers that share a database."""

    def __init__(self, location: DatabaseLocation) -> None:
        self._location = location

    def add(self, key: str, end: float, now: float) -> None:
        """Store a session until its end; delete those that have ended, and the oldest if there are too many."""
        newest = select(SESSIONS.c.key).order_by(SESSIONS.c.until.desc()).limit(MAX_SESSIONS - 1)
        with _SessionDatabase(self._location, create=True) as database, database.changes():
            database.run(delete(SESSIONS).where(SESSIONS.c.until <= now))
            database.run(delete(SESSIONS).where(SESSIONS.c.key.not_in(newest)))
            database.run(insert(SESSIONS).values(key=key, until=end))

    def end_of(self, key: str) -> float:
        """When a session ends; 0 if there is none."""
        with _SessionDatabase(self._location) as database:
            rows = database.rows(select(SESSIONS.c.until).where(SESSIONS.c.key == key))
        return float(rows[0][0]) if rows else 0.0

    def drop(self, key: str) -> None:
        """Delete a session."""
        with _SessionDatabase(self._location, create=True) as database, database.changes():
            database.run(delete(SESSIONS).where(SESSIONS.c.key == key))


def open_sessions(location: DatabaseLocation) -> SessionStore:
    """Open the sessions of a server: in memory, or in a shared database."""
    return MemorySessions() if location.address is None else SharedSessions(location)


class TokenMiddleware:
    """Requires the token, if there is one, for everything below ``/api/``; refuses secrets in addresses.

    Addresses are checked for the token only in requests that carry it. Otherwise the answer would reveal whether one of
    the thousands of guesses that fit into an address is right.
    """

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self.app = app
        self.sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            query = scope["query_string"].decode("latin-1")
            if {key.strip().lower() for key, _ in parse_qsl(query, keep_blank_values=True)} & SECRET_PARAMETERS:
                raise _token_in_address()
            # the rest are the page's own files, which hold nothing private, and the login
            if scope["path"].startswith("/api"):
                headers, client = Headers(scope=scope), client_of(scope)
                if self.sessions.shared:
                    caller = await anyio.to_thread.run_sync(self.sessions.admit, headers, client)
                else:
                    caller = self.sessions.admit(headers, client)
                if caller is False:
                    raise ApiError(
                        401,
                        "a token is needed; send it as 'Authorization: Bearer TOKEN', or open the page and enter it",
                        headers={"WWW-Authenticate": 'Bearer realm="momentseek"'},
                    )
                if self.sessions.token_in(query, unquote_plus(query), scope["path"]):
                    raise _token_in_address()
                CALLER.set(caller)
        await self.app(scope, receive, send)


class Sessions:
    """The token and the sessions it opened: a cookie holds a random id, and only the server knows which ids count.

    So logging out ends a session wherever its cookie was copied to, and a restart ends all sessions, unless servers
    share them in a database.

    >>> sessions = Sessions(ServerSettings(token="correct horse battery"))
    >>> sessions.is_right("correct horse battery"), sessions.is_right("wrong horse")
    (True, False)
    >>> cookie = sessions.open(now=100.0)
    >>> sessions.is_open(cookie, now=200.0), sessions.is_open(cookie, now=1e9), sessions.is_open("made up", now=200.0)
    (True, False, False)
    >>> sessions.end([cookie])
    >>> sessions.is_open(cookie, now=200.0)
    False
    """

    def __init__(self, settings: ServerSettings, kept: SessionStore | None = None, users: Users | None = None) -> None:
        self.token = settings.token
        self._users = users
        self.shared = settings.database is not None
        """Whether servers share the sessions in a database, so that looking one up may take a while."""
        self.name = "momentseek" if self.shared else f"momentseek-{settings.port}"
        self.tries = Throttle()
        self._kept = kept or MemorySessions()

    def admit(self, headers: Headers, client: str) -> str | Literal[False] | None:
        """The sender of a request, by its token or session cookie; False if it has neither but needs one.

        Answers 429 after too many wrong tokens. ``CALLER`` explains the values.
        """
        nobody = None if self.has_users else ANYBODY
        given = headers.get("authorization")
        if given is not None and self.needed:
            scheme, _, token = given.partition(" ")
            right = scheme.lower() == "bearer" and self.try_token(token.strip(), client, time.monotonic())
            return (self._owner(token.strip()) or nobody) if right else False
        for cookie in self.cookies(headers):
            if self.is_open(cookie, time.time()):
                user = _user_of(cookie)
                if user is None or user in self._names():
                    return user or nobody
        return False if self.token is not None else nobody

    @property
    def has_users(self) -> bool:
        """Whether people have their own tokens."""
        return bool(self._names())

    @property
    def needed(self) -> bool:
        """Whether there is a token to enter: a shared one, or people's own."""
        return self.token is not None or self.has_users

    def _names(self) -> set[str]:
        return set() if self._users is None else set(self._users.names().values())

    def _owner(self, token: str) -> str | None:
        return None if self._users is None else self._users.owner(token)

    def cookies(self, headers: Headers) -> list[str]:
        """The session cookies that a request carries."""
        return _cookies("; ".join(headers.getlist("cookie")), self.name)

    def try_token(self, token: str, client: str, now: float) -> bool:
        """Whether a client's token is right; answers 429, whatever the token, if the client must wait."""
        if seconds := self.tries.seconds_to_wait(client, now):
            raise ApiError(
                429, f"too many wrong tokens; try again in {seconds} s", headers={"Retry-After": str(seconds)}
            )
        right = self.is_right(token)
        if right:
            self.tries.note_right(client)
        else:
            self.tries.note_wrong(client, now)
        return right

    def is_right(self, token: str) -> bool:
        """Whether a token is the shared one, compared in constant time, or somebody's own."""
        if self._owner(token) is not None:
            return True
        if self.token is None:
            return not self.has_users
        return hmac.compare_digest(_digest(token), _digest(self.token))

    def open(self, now: float, token: str = "") -> str:
        """Open a session and return its cookie: a random id, and the name of the user whose token was given."""
        user = self._owner(token)
        cookie = secrets.token_urlsafe(32) + ("" if user is None else f".{user.encode().hex()}")
        self._kept.add(self._key(cookie), now + COOKIE_SECONDS, now)
        return cookie

    def is_open(self, cookie: str, now: float) -> bool:
        """Whether a cookie's session is open; looked up by digest, so that timing reveals nothing about ids."""
        return now < self._kept.end_of(self._key(cookie))

    def end(self, cookies: Iterable[str]) -> None:
        """End the sessions of some cookies for good."""
        for cookie in cookies:
            self._kept.drop(self._key(cookie))

    def _key(self, cookie: str) -> str:
        """The stored key of a session; it depends on the token, so that a new token ends all sessions of the old."""
        return hmac.new((self.token or "").encode(), cookie.encode("utf-8", "replace"), "sha256").hexdigest()

    def token_in(self, *texts: str) -> bool:
        """Whether one of the texts contains the token."""
        return self.token is not None and any(self.token in text for text in texts)


def _user_of(cookie: str) -> str | None:
    """The user whom a cookie names. The caller must have checked that the session is open.

    >>> _user_of("abc.616e6e"), _user_of("abc")
    ('ann', None)
    """
    _, dot, name = cookie.partition(".")
    return bytes.fromhex(name).decode() if dot else None


def _token_in_address() -> ApiError:
    """Addresses end up in histories and logs, so they must not contain a secret."""
    return ApiError(
        400, "a token must not be part of an address; send it as 'Authorization: Bearer TOKEN'", code="token_in_address"
    )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _cookies(header: str, name: str) -> list[str]:
    """All values of a cookie in a header, which may also hold malformed cookies of other programs on this host.

    >>> _cookies('odd"{one}; é; a=1;b = 2; a=3', "a")
    ['1', '3']
    """
    pairs = (part.partition("=") for part in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]
