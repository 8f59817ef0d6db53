"""The server's own databases: SQLite files next to a library, or one PostgreSQL database that several servers share."""

from __future__ import annotations

import os
import sqlite3
import ssl
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, Protocol, Self
from urllib.parse import parse_qs, unquote, urlsplit

from momentseek.core.errors import LibraryBusyError, LibraryError, MomentseekError, optional_module, parameter
from momentseek.library.database import DATABASE_ERRORS, transaction


class DatabaseConnection(Protocol):
    """An open connection; its SQL is what SQLite and PostgreSQL both understand, with ``?`` for values."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement; the cursor that is returned has ``fetchall`` and ``rowcount``."""
        ...

    def transaction(self, *, write: bool) -> AbstractContextManager[None]:
        """Make a transaction of what is done inside; nobody else writes during one that writes."""
        ...

    def prepare(self, schema: str, version: int) -> int:
        """Make the tables unless they are there; returns the version of those that are."""
        ...

    def has_table(self, name: str) -> bool:
        """Whether there is a table with this name."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...


class SqliteConnection:
    """An open SQLite file, in WAL mode; with no path, a database that is gone when it is closed."""

    def __init__(self, path: Path | None, wait_seconds: float) -> None:
        self._db = sqlite3.connect(
            ":memory:" if path is None else path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
        )

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._db.in_transaction

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run a statement."""
        return self._db.execute(sql, values)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Make a transaction of what is done inside; nobody else writes during one that writes."""
        with transaction(self._db, "BEGIN IMMEDIATE" if write else "BEGIN"):
            yield

    def prepare(self, schema: str, version: int) -> int:
        """Make the tables unless they are there; returns the version of those that are."""
        for pragma in ("foreign_keys", "fullfsync"):
            self._db.execute(f"PRAGMA {pragma} = ON")
        self._db.execute("PRAGMA synchronous = FULL")
        if not self._version():
            self._db.execute("PRAGMA journal_mode = WAL")
            with self.transaction(write=True):
                if not self._version():  # another thread may have been quicker
                    for statement in filter(str.strip, schema.split(";")):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version = {version}")
        return self._version()

    def has_table(self, name: str) -> bool:
        """Whether there is a table with this name."""
        return bool(self._db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchall())

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])


ANSWER_SECONDS = 20
"""How long the database may take to answer; more than writers wait for each other."""
IDLE_CONNECTIONS = 8
"""Connections that are kept open for later, per schema."""
_IDLE: dict[tuple[str, str], LifoQueue[PostgresConnection]] = {}


@dataclass(frozen=True)
class PostgresAddress:
    """What an address ``postgresql://user:password@host:port/database?sslmode=require`` says.

    >>> PostgresAddress.of("postgresql://ann:secret@db.local/films").shown
    'postgresql://db.local:5432/films'
    >>> PostgresAddress.of("postgresql:///films?host=/run/postgresql").options["unix_sock"]
    '/run/postgresql/.s.PGSQL.5432'
    """

    shown: str
    """The address without user and password, for messages."""
    options: dict[str, Any]

    @classmethod
    def of(cls, address: str) -> PostgresAddress:
        """Parse an address; the password may also come from ``$PGPASSWORD``, which no list of processes shows."""
        try:
            parts = urlsplit(address)
            port = parts.port or 5432
        except ValueError:
            raise MomentseekError(
                f"the address of the database ({parameter('database')}) has no valid port; check it"
            ) from None
        asked = parse_qs(parts.query)
        host = asked.get("host", [unquote(parts.hostname or "")])[0] or "localhost"
        database = unquote(parts.path.strip("/"))
        if parts.scheme not in ("postgresql", "postgres") or not database or set(asked) - {"host", "sslmode"}:
            raise MomentseekError(
                "the address of the database must look like postgresql://USER@HOST:5432/NAME, perhaps with "
                f"?sslmode=require or ?host=/FOLDER/OF/THE/SOCKET; check {parameter('database')}"
            )
        user = unquote(parts.username or "") or os.environ.get("PGUSER") or os.environ.get("USER") or "momentseek"
        password = unquote(parts.password) if parts.password is not None else os.environ.get("PGPASSWORD")
        options: dict[str, Any] = {"user": user, "database": database, "password": password}
        if host.startswith("/"):
            options["unix_sock"] = f"{host}/.s.PGSQL.{port}"
        else:
            options |= {"host": host, "port": port, "ssl_context": _ssl_context(asked.get("sslmode", ["disable"])[0])}
        return cls(f"postgresql://{host}:{port}/{database}", options)


def _ssl_context(mode: str) -> ssl.SSLContext | None:
    if mode == "disable":
        return None
    if mode not in ("require", "verify-full"):
        raise MomentseekError(
            f"sslmode={mode} is not known here; use disable, require or verify-full in {parameter('database')}"
        )
    context = ssl.create_default_context()
    if mode == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class PostgresConnection:
    """An open connection that speaks SQLite's few dialect words of our schemas and statements."""

    def __init__(self, address: PostgresAddress, schema: str, wait_seconds: float) -> None:
        self._driver = optional_module("pg8000.dbapi", "postgres")
        self._shown, self._schema = address.shown, schema
        self._idle: LifoQueue[PostgresConnection] | None = None
        try:
            self._db = self._driver.connect(**address.options, timeout=ANSWER_SECONDS, application_name="momentseek")
            self._db.autocommit = True
            self.in_transaction = False
            self.execute(f"SET lock_timeout = '{int(wait_seconds * 1000)}ms'")
            self.execute(f"SET search_path TO {schema}")
        except self._errors as e:
            raise self._explain(e) from None

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        return (self._driver.Error, OSError, ValueError, AttributeError)  # the last two on a broken connection

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement; ``?`` stands for a value."""
        cursor = self._db.cursor()
        try:
            cursor.execute(sql.replace("?", "%s"), tuple(values))
        except self._errors as e:
            raise self._explain(e) from None
        return cursor

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Make a transaction of what is done inside; nobody else writes during one that writes."""
        self.execute("BEGIN" if write else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self.in_transaction = True
        try:
            if write:
                self.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (self._schema,))
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(LibraryError):
                self.execute("ROLLBACK")
            raise
        finally:
            self.in_transaction = False

    def prepare(self, schema: str, version: int) -> int:
        """Make the tables unless they are there; returns the version of those that are."""
        if not self.has_table("version"):
            with self.transaction(write=True):
                if not self.has_table("version"):  # another server may have been quicker
                    self.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
                    for statement in filter(str.strip, _translate(schema).split(";")):
                        self.execute(statement)
                    self.execute("CREATE TABLE version (number INTEGER NOT NULL)")
                    self.execute("INSERT INTO version VALUES (?)", (version,))
        return int(self.execute("SELECT number FROM version").fetchall()[0][0])

    def has_table(self, name: str) -> bool:
        """Whether there is a table with this name."""
        # to_regclass() would not see what others made while this transaction waited for its lock
        sql = "SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = ?"
        return bool(self.execute(sql, (self._schema, name)).fetchall())

    def is_alive(self) -> bool:
        """Whether the server still answers here; it may have been restarted since the connection was opened."""
        try:
            return bool(self.execute("SELECT 1").fetchall())
        except LibraryError:
            return False

    def close(self) -> None:
        """Keep the connection for the next one who needs it, or close it."""
        if self._idle is not None and not self.in_transaction and self._idle.qsize() < IDLE_CONNECTIONS:
            self._idle.put(self)
            return
        self.end()

    def end(self) -> None:
        """Close the connection for good."""
        with suppress(*self._errors):
            self._db.close()

    def keep_in(self, idle: LifoQueue[PostgresConnection]) -> PostgresConnection:
        """Say where the connection goes when it is closed."""
        self._idle = idle
        return self

    def _explain(self, e: Exception) -> LibraryError:
        """An error of the driver as one sentence."""
        told = e.args[0] if e.args else ""
        code, text = (told.get("C", ""), str(told.get("M", ""))) if isinstance(told, dict) else ("", str(told or e))
        if code == "55P03":
            return LibraryBusyError("another server is writing to the database; try again in a moment")
        remedies = {
            "28": "check user and password",
            "3D": "make it with: createdb NAME",
            "42501": "let the user create schemas in it (GRANT CREATE ON DATABASE)",
            "53": "try again when it has room",
        }
        remedy = next((r for start, r in remedies.items() if code.startswith(start)), None)
        if not code or code.startswith(("08", "57P")):
            return LibraryError(
                f"{self._shown}: the database cannot be reached ({text}); check {parameter('database')}"
            )
        return LibraryError(f"{self._shown}: the database cannot be used ({text}); {remedy or 'see its log'}")


def _translate(schema: str) -> str:
    """A schema in PostgreSQL's words.

    >>> _translate("CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT, x REAL NOT NULL) WITHOUT ROWID")
    'CREATE TABLE a (id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, x DOUBLE PRECISION NOT NULL)'
    """
    for word, meaning in (
        ("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
        (" INTEGER", " BIGINT"),
        (" REAL", " DOUBLE PRECISION"),
        (" WITHOUT ROWID", ""),
    ):
        schema = schema.replace(word, meaning)
    return schema


def open_postgres(address: str, schema: str, wait_seconds: float) -> PostgresConnection:
    """A connection to a database: one that is idle and alive, else a new one."""
    idle = _IDLE.setdefault((address, schema), LifoQueue())
    while True:
        try:
            found = idle.get_nowait()
        except Empty:
            return PostgresConnection(PostgresAddress.of(address), schema, wait_seconds).keep_in(idle)
        if found.is_alive():
            return found
        found.end()


def close_idle(address: str) -> None:
    """Close the connections to a database that wait for their next use."""
    for (known, _), idle in list(_IDLE.items()):
        while known == address:
            try:
                idle.get_nowait().end()
            except Empty:
                break


@dataclass(frozen=True)
class DatabaseLocation:
    """Where a server keeps its own data: files in the library's folder, or a PostgreSQL database that others share."""

    folder: Path
    address: str | None = None
    """``postgresql://…``; None for SQLite files in the folder."""

    def close(self) -> None:
        """Close connections that wait for their next use."""
        if self.address is not None:
            close_idle(self.address)


class ServerDatabase:
    """An open database; what is kept in it says its ``schema`` and ``version`` and explains its errors."""

    name: str
    """The file's name without ending, and what comes after ``momentseek_`` in the name of PostgreSQL's schema."""
    schema: str
    version: int
    wait_seconds: float
    """Seconds to wait for another transaction."""

    def __init__(self, place: Path | DatabaseLocation, *, create: bool = False) -> None:
        place = place if isinstance(place, DatabaseLocation) else DatabaseLocation(place)
        self.path = place.folder / f"{self.name}.sqlite"
        self._db: DatabaseConnection
        try:
            if place.address is not None:
                self._db = open_postgres(place.address, f"momentseek_{self.name}", self.wait_seconds)
            else:
                # reading creates no file: the library may lie where nothing can be written
                path = self.path if create or self.path.is_file() else None
                self._db = SqliteConnection(path, self.wait_seconds)
            found = self._db.prepare(self.schema, self.version)
        except DATABASE_ERRORS as e:
            raise self.explain(e) from None
        if found != self.version:
            self.close()
            where = self.path if place.address is None else f"momentseek_{self.name} in the database"
            raise LibraryError(f"{where}: was made by another release (format {found}); update momentseek")

    def explain(self, e: Exception) -> LibraryError:
        """An error of SQLite as one that says what to do."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def changes(self) -> Iterator[None]:
        """A transaction for writing: all of it happens or nothing, and nobody else writes meanwhile."""
        with self._transaction(write=True):
            yield

    @contextmanager
    def view(self) -> Iterator[None]:
        """A transaction for several reads of the same state, whatever others commit meanwhile; may be nested."""
        if self._db.in_transaction:
            yield
            return
        with self._transaction(write=False):
            yield

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[None]:
        try:
            with self._db.transaction(write=write):
                yield
        except DATABASE_ERRORS as e:
            raise self.explain(e) from None

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return list(self._db.execute(sql, values).fetchall())
        except DATABASE_ERRORS as e:
            raise self.explain(e) from None


__all__ = ["DatabaseLocation", "ServerDatabase"]
