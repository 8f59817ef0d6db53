"""SqliteConnection: a database of the server's own in a file beside a library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from momentseek.library.database import transaction


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
