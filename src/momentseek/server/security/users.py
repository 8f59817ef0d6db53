"""Users with their own tokens: who sent a request, and under which name it may judge and save bookmarks.

Without users there is only the shared token, or none, and names are not checked. With at least one user, a name can
only be used with its own token.
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
"""How long the list of users is cached."""
ANYBODY: Final = ""
"""The caller if there are no users; names are not checked then."""
TABLES = MetaData()
USERS = Table(
    "users",
    TABLES,
    Column("name", Text, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("since", Double, nullable=False),
)
CALLER: ContextVar[str | None] = ContextVar("caller", default=ANYBODY)
"""The user who sent the current request; None if there are users but the request has no user's token."""


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
            403, "judging and saving need your own token on this server; ask for one (serve users add)", code="no_name"
        )
    if caller not in (ANYBODY, name):
        raise ApiError(403, f"your token belongs to {caller}, so give that name", code="wrong_name")
    return name


class _UserDatabase(ServerDatabase):
    """The open database of users; tokens are stored as digests, so that reading the table gives nobody access."""

    name, contents, migrations = "users", "users", (TABLES.create_all,)


class Users:
    """The users of a server; the list is cached for a moment."""

    def __init__(self, location: DatabaseLocation) -> None:
        self._location = location
        self._names: dict[str, str] | None = None
        """Digest of a token → its owner; None before they are first read."""
        self._read_at = 0.0

    def names(self) -> dict[str, str]:
        """Digest of a token → its owner, cached for a moment, or since the database could last be read."""
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
        """The owner of a token, or None. Looked up by digest, so that timing reveals nothing about tokens."""
        return self.names().get(digest_of(token))

    def list(self) -> list[tuple[str, float]]:
        """The names of all users, and when each got their token (seconds since 1970)."""
        with _UserDatabase(self._location) as database:
            return [(name, since) for name, _, since in database.rows(select(USERS).order_by(USERS.c.name))]

    def add(self, name: str) -> str:
        """Add a user, or replace a user's token; returns the token, which is not stored."""
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
        """Remove a user and their token; their judgements and bookmarks stay under their name."""
        with _UserDatabase(self._location, create=True) as database, database.changes():
            if not database.run(delete(USERS).where(USERS.c.name == normalise_name(name))).rowcount:
                raise MomentseekError(f"there is no user {name!r}; `momentseek serve users list` shows them")


def digest_of(token: str) -> str:
    """The digest that is stored of a token; tokens are random, so a plain hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
