"""ServerDatabase: what a server keeps of its own: its version, its transactions, its errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from momentseek.errors import LibraryError
from momentseek.library.database import DATABASE_ERRORS
from momentseek.server.database.connection import DatabaseConnection
from momentseek.server.database.postgres import close_idle, open_postgres
from momentseek.server.database.sqlite import SqliteConnection


@dataclass(frozen=True)
class DatabasePlace:
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

    def __init__(self, place: Path | DatabasePlace, *, create: bool = False) -> None:
        place = place if isinstance(place, DatabasePlace) else DatabasePlace(place)
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
