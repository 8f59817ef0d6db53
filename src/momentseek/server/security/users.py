"""People with tokens of their own: who a request comes from, and under which name it may judge and keep.

Without users everything is as simple as the shared token, or none: names are taken as they are given. With at least
one user, a name belongs to who has its token.
"""

from __future__ import annotations

import hashlib
import secrets
import time
import unicodedata
from contextvars import ContextVar
from typing import Final

from sqlalchemy import Column, Double, MetaData, Table, Text, delete, insert, select

from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.server.database import DatabaseLocation, ServerDatabase
from momentseek.server.errors import ApiError

MAX_NAME_CHARACTERS = 64
FRESH_SECONDS = 2.0
"""How long a list of users counts before it is read again."""
ANYBODY: Final = ""
"""The caller where there are no users: nobody checks names."""
TABLES = MetaData()
USERS = Table(
    "users",
    TABLES,
    Column("name", Text, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("since", Double, nullable=False),
)
CALLER: ContextVar[str | None] = ContextVar("caller", default=ANYBODY)
"""The user that sent the present request; None for a request with the shared token, or none, where there are users."""


def normalise_name(given: str) -> str:
    r"""A person's name in normal form; raises ValueError unless it has 1 to 64 printable characters.

    >>> normalise_name("  Zoe\u0308 ")
    'Zoë'
    >>> normalise_name("a\nb")
    Traceback (most recent call last):
        ...
    ValueError: a name has 1 to 64 printable characters
    """
    name = unicodedata.normalize("NFC", given).strip()
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise ValueError(f"a name has 1 to {MAX_NAME_CHARACTERS} printable characters")
    return name


def own_name(given: str) -> str:
    """A name that a request gives, in normal form; 403 if it is not the caller's own."""
    name, caller = normalise_name(given), CALLER.get()
    if caller is None:
        raise ApiError(
            403, "people judge and keep with a token of their own here; ask for one (serve users add)", code="no_name"
        )
    if caller not in (ANYBODY, name):
        raise ApiError(403, f"your token is {caller}'s, so give that name", code="wrong_name")
    return name


class _UserDatabase(ServerDatabase):
    """The open database of users; a token is kept as a digest, so that reading the table lets nobody in."""

    name, contents, migrations = "users", "users", (TABLES.create_all,)


class Users:
    """The users of a server; what is asked often is read now and then."""

    def __init__(self, location: DatabaseLocation) -> None:
        self._location = location
        self._names: dict[str, str] | None = None
        """Digest of a token → its owner; None before they are first read."""
        self._read_at = 0.0

    def names(self) -> dict[str, str]:
        """Digest of a token → its owner, as they were a moment ago, or when the database could last be read."""
        if self._names is None or time.monotonic() - self._read_at >= FRESH_SECONDS:
            try:
                with _UserDatabase(self._location) as database:
                    self._names = {digest: name for name, digest, _ in database.rows(select(USERS))}
            except LibraryError:
                if self._names is None:
                    raise
            self._read_at = time.monotonic()
        return self._names

    def owner(self, token: str) -> str | None:
        """Whose token this is; None if it is nobody's. Looked up by digest, so that timing tells nothing of tokens."""
        return self.names().get(digest_of(token))

    def list(self) -> list[tuple[str, float]]:
        """Names, and since when each has their token (seconds since 1970)."""
        with _UserDatabase(self._location) as database:
            return [(name, since) for name, _, since in database.rows(select(USERS).order_by(USERS.c.name))]

    def add(self, name: str) -> str:
        """Add a user, or give one another token; returns the token, which is kept nowhere."""
        try:
            own = normalise_name(name)
        except ValueError as e:
            raise MomentseekError(f"{name!r}: {e}") from None
        token = secrets.token_urlsafe(32)
        with _UserDatabase(self._location, create=True) as database, database.changes():
            database.run(delete(USERS).where(USERS.c.name == own))
            database.run(insert(USERS).values(name=own, digest=digest_of(token), since=time.time()))
        return token

    def remove(self, name: str) -> None:
        """Take a user's token away; what they said stays under their name."""
        with _UserDatabase(self._location, create=True) as database, database.changes():
            if not database.run(delete(USERS).where(USERS.c.name == normalise_name(name))).rowcount:
                raise MomentseekError(f"there is no user {name!r}; `momentseek serve users list` shows them")


def digest_of(token: str) -> str:
    """What is kept of a token; tokens are random, so a plain hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
