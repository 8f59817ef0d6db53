"""DatabaseConnection: what a store needs of a database, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


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
