"""ServerDatabase: an SQLite file of the server's own beside a library: its version, its transactions, its errors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from momentseek.errors import LibraryError
from momentseek.library.database import DATABASE_ERRORS, transaction


class ServerDatabase:
    """An open database; what is kept in it says its ``schema`` and ``version`` and explains its errors."""

    schema: str
    version: int
    wait_seconds: float
    """Seconds to wait for another transaction."""

    def __init__(self, path: Path, *, in_memory: bool) -> None:
        self.path = path
        try:
            self._db = sqlite3.connect(
                ":memory:" if in_memory else path,
                timeout=self.wait_seconds,
                isolation_level=None,
                check_same_thread=False,
            )
            for pragma in ("foreign_keys", "fullfsync"):
                self._db.execute(f"PRAGMA {pragma} = ON")
            self._db.execute("PRAGMA synchronous = FULL")
            if not self._version():
                self._create()
            found = self._version()
        except DATABASE_ERRORS as e:
            raise self.explain(e) from None
        if found != self.version:
            self.close()
            raise LibraryError(f"{path}: was made by another release (format {found}); update momentseek")

    def explain(self, e: Exception) -> LibraryError:
        """An error of SQLite as one that says what to do."""
        raise NotImplementedError

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _create(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        with self.changes():
            if not self._version():  # another thread may have been quicker
                for statement in filter(str.strip, self.schema.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {self.version}")

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
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def view(self) -> Iterator[None]:
        """A transaction for several reads of the same state, whatever others commit meanwhile; may be nested."""
        if self._db.in_transaction:
            yield
            return
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        try:
            with transaction(self._db, begin):
                yield
        except DATABASE_ERRORS as e:
            raise self.explain(e) from None

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._db.execute(sql, values).fetchall()
        except DATABASE_ERRORS as e:
            raise self.explain(e) from None
