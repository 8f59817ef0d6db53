"""The server's own databases: SQLite files next to a library, or one PostgreSQL database that several servers share.

Both are used through SQLAlchemy Core. The driver for PostgreSQL is pg8000 (BSD, pure Python), imported only when an
address is given. Each kind of data has a schema of its own there (``momentseek_judgements``, …), so that the database
may hold other things too.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DisconnectionError, IntegrityError, SQLAlchemyError
from sqlalchemy.schema import CreateSchema
from sqlalchemy.types import TypeEngine

from momentseek.core.errors import LibraryBusyError, LibraryError, MomentseekError, optional_module, parameter
from momentseek.library.database import DATABASE_ERRORS, create_file, file_size
from momentseek.server.settings import is_loopback

ANSWER_SECONDS = 20
"""How long PostgreSQL may take to answer; longer than writers wait for each other."""
IDLE_CONNECTIONS = 8
"""Number of idle connections to PostgreSQL that stay open."""
BigId = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""The type of ids; SQLite numbers the rows of plain integer keys only."""
Migration = Callable[[sa.Connection], None]
_VERSION = sa.Table("version", sa.MetaData(), sa.Column("number", sa.Integer, nullable=False))
"""The table in PostgreSQL for what SQLite calls ``user_version``."""
_ERRORS = (SQLAlchemyError, ConnectionError, TimeoutError, *DATABASE_ERRORS)
"""What the databases raise; pg8000 does not wrap the errors of a broken connection."""


def columns(type: type[TypeEngine[Any]], *names: str) -> list[sa.Column[Any]]:
    """Columns of one type that are never null."""
    return [sa.Column(name, type, nullable=False) for name in names]


@dataclass(frozen=True)
class DatabaseLocation:
    """Where a server keeps its own data: files in the library's folder, or a shared PostgreSQL database."""

    folder: Path
    address: str | None = None
    """``postgresql://…``; None for SQLite files in the folder."""

    def close(self) -> None:
        """Close idle connections."""
        if self.address is not None:
            postgres_engine(self.address).dispose()


class ServerDatabase:
    """An open database; use it in one thread and close it soon."""

    name: ClassVar[str]
    """The file's name without ending, and what comes after ``momentseek_`` in the name of PostgreSQL's schema."""
    contents: ClassVar[str]
    """The kind of data in it, for messages."""
    migrations: ClassVar[Sequence[Migration]]
    """Each upgrades the database by one version; only ever append to them.

    The first creates the tables as they are now, so the others must skip what already exists."""
    wait_seconds: ClassVar[float] = 10.0
    """Seconds to wait for another transaction."""

    def __init__(self, location: Path | DatabaseLocation, *, create: bool = False) -> None:
        self.location = location if isinstance(location, DatabaseLocation) else DatabaseLocation(location)
        self.path = self.location.folder / f"{self.name}.sqlite"
        self._schema = f"momentseek_{self.name}"
        if not create and self._is_empty():
            raise LibraryError(
                f"{self.path}: is empty, as a full disk leaves it; bring the {self.contents} back from a copy, or "
                "delete the file to start again"
            )
        try:
            self._db = self._connect(create)
        except _ERRORS as e:
            raise self._explain(e) from None
        try:
            found = self._version()
            if found < len(self.migrations):
                found = self._migrate()
        except BaseException:
            self.close()
            raise
        if found != len(self.migrations):
            self.close()
            where = self.path if self.location.address is None else f"{self._schema} in the database"
            raise LibraryError(f"{where}: is of another release (format {found}); update momentseek")

    def _is_empty(self) -> bool:
        """Whether the file exists but is empty, as is its write-ahead log."""
        if self.location.address is not None or not self.path.is_file():
            return False
        log = self.path.with_name(f"{self.path.name}-wal")  # SQLite deletes it once the file has what was in it
        return file_size(log) == 0 and file_size(self.path) == 0

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def changes(self) -> Iterator[None]:
        """A transaction for writing: all or nothing, and nobody else writes meanwhile."""
        with self._transaction(writes=True):
            yield

    @contextmanager
    def view(self) -> Iterator[None]:
        """A transaction in which several reads see the same state, whatever others commit meanwhile; may be nested."""
        if self._db.in_transaction():
            yield
            return
        with self._transaction(writes=False):
            yield

    def rows(self, statement: sa.Executable) -> list[Any]:
        """All rows of a statement, as named tuples."""
        with self.view():
            return list(self._db.execute(statement))

    def run(self, statement: sa.Executable) -> sa.CursorResult[Any]:
        """Execute a statement inside ``changes()``."""
        return self._db.execute(statement)

    def insert_new(self, table: sa.Table, **values: Any) -> None:
        """Insert a row inside ``changes()``, unless one with the same key exists."""
        with suppress(IntegrityError), self._db.begin_nested():
            self._db.execute(sa.insert(table).values(**values))

    def _connect(self, create: bool) -> sa.Connection:
        if self.location.address is not None:
            found = postgres_engine(self.location.address).connect()
            return found.execution_options(schema_translate_map={None: self._schema})
        if create and not self.path.exists():
            create_file(self.path)
        # reading creates no file: the library may be on a read-only disk
        return sqlite_engine(self.path if create or self.path.is_file() else None, self.wait_seconds).connect()

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[None]:
        try:
            with self._db.execution_options(writes=writes).begin():
                if self.location.address is not None and writes:
                    self._db.execute(sa.text(f"SET LOCAL lock_timeout = {int(self.wait_seconds * 1000)}"))
                    self._db.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(self._schema))))
                elif self.location.address is not None:
                    self._db.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
                yield
        except _ERRORS as e:
            raise self._explain(e) from None

    def _version(self) -> int:
        with self.view():
            if self.location.address is None:
                return int(self._db.execute(sa.text("PRAGMA user_version")).scalar_one())
            if not sa.inspect(self._db).has_table(_VERSION.name, schema=self._schema):
                return 0
            return int(self._db.execute(sa.select(_VERSION.c.number)).scalar_one())

    def _migrate(self) -> int:
        with self.changes():
            found = self._version()  # another thread or server may have been quicker
            if self.location.address is not None and not found:
                self._db.execute(CreateSchema(self._schema, if_not_exists=True))
                _VERSION.create(self._db)
                self._db.execute(sa.insert(_VERSION).values(number=0))
            for number, migrate in enumerate(self.migrations[found:], found + 1):
                migrate(self._db)
                if self.location.address is None:
                    self._db.execute(sa.text(f"PRAGMA user_version = {number}"))
                else:
                    self._db.execute(_VERSION.update().values(number=number))
            return max(found, len(self.migrations))

    def _explain(self, e: BaseException) -> LibraryError:
        """Turn an error of the driver into one that says what to do."""
        origin = getattr(e, "orig", None) or e
        if self.location.address is not None:
            return explain_postgres(origin, self.location.address)
        message = str(origin) if isinstance(origin, sqlite3.Error) else "malformed content"
        if "locked" in message or "busy" in message:
            return LibraryBusyError(f"another process is writing {self.contents}; try again in a moment")
        if "full" in message:
            return LibraryError(f"{self.path}: the disk is full; make room and try again")
        if "disk I/O error" in message:
            return LibraryError(f"{self.path}: the disk cannot read or write it ({message}); check the disk")
        if "readonly" in message or "unable to open" in message:
            return LibraryError(f"{self.path}: cannot be opened or written ({message}); check the folder's permissions")
        return LibraryError(
            f"{self.path}: the {self.contents} cannot be used ({message}); bring the file back from a copy, or move it "
            "away to start again"
        )


@lru_cache(maxsize=100)
def sqlite_engine(path: Path | None, wait_seconds: float) -> sa.Engine:
    """The engine of an SQLite file in WAL mode, or, without a path, of databases in memory."""

    def connect() -> sqlite3.Connection:
        where = ":memory:" if path is None else path
        db = sqlite3.connect(where, timeout=wait_seconds, isolation_level=None, check_same_thread=False)
        try:
            for pragma in ("foreign_keys = ON", "fullfsync = ON", "synchronous = FULL", "journal_mode = WAL"):
                db.execute(f"PRAGMA {pragma}")
        except BaseException:
            db.close()
            raise
        return db

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.NullPool)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@lru_cache(maxsize=100)
def postgres_engine(address: str) -> sa.Engine:
    """The engine of a PostgreSQL database; connections that are idle are checked before they are used again."""
    driver = optional_module("pg8000", "postgres")
    url, options = parse_postgres(address)
    engine = sa.create_engine(
        url,
        connect_args={**options, "timeout": ANSWER_SECONDS, "application_name": "momentseek"},
        pool_size=IDLE_CONNECTIONS,
        max_overflow=-1,
    )
    # the pool would log that a connection which the server has closed cannot be closed
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)

    @sa.event.listens_for(engine, "checkout")
    def check(db: Any, *_: object) -> None:  # instead of pool_pre_ping, which only handles the driver's own errors
        try:
            db.cursor().execute("SELECT 1")
            db.rollback()
        except (driver.Error, OSError):
            raise DisconnectionError from None

    return engine


def parse_postgres(address: str) -> tuple[URL, dict[str, Any]]:
    """SQLAlchemy's URL and the driver's options of ``postgresql://user:password@host:port/database?sslmode=require``.

    The password may also come from ``$PGPASSWORD``, which no list of processes shows. The connection is encrypted
    unless the database is on this machine or ``sslmode=disable`` is given.

    >>> url, _ = parse_postgres("postgresql://ann:secret@db.local/films")
    >>> url.host, url.port, url.database
    ('db.local', 5432, 'films')
    >>> parse_postgres("postgresql:///films?host=/run/postgresql")[1]
    {'unix_sock': '/run/postgresql/.s.PGSQL.5432'}
    """
    try:
        given = sa.make_url(address)
        port = given.port or 5432
    except (ArgumentError, ValueError):
        raise MomentseekError(
            f"the address of the database ({parameter('database')}) has no valid port; check it"
        ) from None
    asked = {key: value if isinstance(value, str) else value[0] for key, value in given.query.items()}
    if given.drivername not in ("postgresql", "postgres") or not given.database or set(asked) - {"host", "sslmode"}:
        raise MomentseekError(
            "the address of the database must look like postgresql://USER@HOST:5432/NAME, perhaps with "
            f"?sslmode=require or ?host=/FOLDER/OF/THE/SOCKET; check {parameter('database')}"
        )
    user = given.username or os.environ.get("PGUSER") or os.environ.get("USER") or "momentseek"
    password = given.password if given.password is not None else os.environ.get("PGPASSWORD")
    host = asked.get("host") or given.host or "localhost"
    if host.startswith("/"):
        url = URL.create("postgresql+pg8000", user, password, database=given.database)
        return url, {"unix_sock": f"{host}/.s.PGSQL.{port}"}
    url = URL.create("postgresql+pg8000", user, password, host, port, given.database)
    usual = "disable" if is_loopback(host) else "require"
    return url, {"ssl_context": _ssl_context(asked.get("sslmode", usual))}


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


def explain_postgres(e: BaseException, address: str) -> LibraryError:
    """An error of PostgreSQL's driver as one sentence, which shows the address without user and password."""
    url, options = parse_postgres(address)
    place = options.get("unix_sock") or f"{url.host}:{url.port}"
    shown = f"postgresql://{place}/{url.database}"
    given = e.args[0] if e.args else ""
    code, said = (given.get("C", ""), str(given.get("M", ""))) if isinstance(given, dict) else ("", str(given or e))
    if code == "55P03":
        return LibraryBusyError("another server is writing to the database; try again in a moment")
    if not code and "ssl" in said.lower():
        return LibraryError(
            f"{shown}: the database does not offer encryption ({said}); turn it on, or give ?sslmode=disable"
        )
    if not code or code.startswith(("08", "57P")):
        return LibraryError(f"{shown}: the database cannot be reached ({said}); check {parameter('database')}")
    remedies = {
        "28": "check user and password",
        "3D": "create it with: createdb NAME",
        "42501": "let the user create schemas in it (GRANT CREATE ON DATABASE)",
        "53": "try again when it has room",
    }
    remedy = next((remedy for start, remedy in remedies.items() if code.startswith(start)), "see its log")
    return LibraryError(f"{shown}: the database cannot be used ({said}); {remedy}")
