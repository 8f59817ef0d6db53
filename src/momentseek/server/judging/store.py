"""Store: the judgements of a library, one SQLite database beside its catalog.

WAL mode: any number of threads and processes read while one writes. Everything that depends on what others have said
happens in ``changes()``, one transaction.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from momentseek.api import Library
from momentseek.errors import LibraryBusyError, LibraryError
from momentseek.library.database import transaction
from momentseek.server.judging.errors import UnknownError
from momentseek.server.judging.rows import CandidateRow, Judgement, QueryRow
from momentseek.server.judging.schema import SCHEMA, VERSION

FILE = "judgements.sqlite"
BUSY_SECONDS = 10.0
T = TypeVar("T")

_CANDIDATES = """SELECT c.id, c.query, q.text, c.rank, c.batch, c.video, v.label, v.name, v.duration, c.start, c.end,
                        c.score FROM candidates c JOIN queries q ON q.id = c.query JOIN videos v ON v.hash = c.video
                 WHERE c.batch <= q.batches AND {only} ORDER BY c.query, c.rank"""
# of each group SQLite gives the row that has the maximum
_LATEST = """SELECT max(h.id), c.query, h.candidate, h.annotator, h.relevance, h.at FROM history h
             JOIN candidates c ON c.id = h.candidate WHERE h.undone IS NULL AND {only}
             GROUP BY h.candidate, h.annotator ORDER BY 1"""


class Store:
    """Open judgements; for one thread, and soon closed again."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.path = folder / FILE
        # who only looks makes no file: the library may lie where nothing can be written
        there = create or self.path.is_file()
        try:
            self._db = sqlite3.connect(
                self.path if there else ":memory:", timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._db.execute("PRAGMA foreign_keys = ON")
            self._db.execute("PRAGMA synchronous = FULL")
            if not self._version():
                self._create()
            found = self._version()
        except sqlite3.Error as e:
            raise _unusable(self.path, e) from None
        if found != VERSION:
            self.close()
            raise LibraryError(f"{self.path}: was made by another release (format {found}); update momentseek")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _create(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        with self.changes():
            if not self._version():  # another thread may have been quicker
                for statement in filter(str.strip, SCHEMA.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def changes(self) -> Iterator[None]:
        """One transaction: all of it happens, or nothing, and nobody else writes meanwhile."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def view(self) -> Iterator[None]:
        """Several reads of the same state, whatever others commit meanwhile; one inside another is the same."""
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
        except sqlite3.Error as e:
            raise _unusable(self.path, e) from None

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """What a query finds."""
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as e:
            raise _unusable(self.path, e) from None

    # reading

    def queries(self) -> list[QueryRow]:
        """All queries, the oldest first."""
        return [QueryRow(*row) for row in self.rows("SELECT id, text, depth, batches, created FROM queries")]

    def query(self, id: int) -> QueryRow:
        """One query; UnknownError if there is none."""
        rows = self.rows("SELECT id, text, depth, batches, created FROM queries WHERE id = ?", (id,))
        if not rows:
            raise UnknownError(f"there is no query {id} to judge; GET /api/v1/judging/queries lists them")
        return QueryRow(*rows[0])

    def asking(self, text: str) -> QueryRow | None:
        """The query of a text."""
        rows = self.rows("SELECT id, text, depth, batches, created FROM queries WHERE text = ?", (text,))
        return QueryRow(*rows[0]) if rows else None

    def candidates(self, query: int | None = None) -> list[CandidateRow]:
        """The moments that are to be judged, of one query or all: by query, then by rank."""
        return [CandidateRow(*row) for row in self._of(_CANDIDATES, query)]

    def judgements(self, query: int | None = None) -> list[Judgement]:
        """What everybody says now, in the order in which it was said."""
        return [Judgement(*row) for row in self._of(_LATEST, query)]

    def _of(self, sql: str, query: int | None) -> list[Any]:
        """Rows of one query, by its index, or of all."""
        if query is None:
            return self.rows(sql.format(only="1"))
        return self.rows(sql.format(only="c.query = ?"), (query,))

    def history(self) -> list[tuple[Judgement, float | None]]:
        """All that was ever said, and when it was taken back."""
        rows = self.rows(
            """SELECT h.id, c.query, h.candidate, h.annotator, h.relevance, h.at, h.undone FROM history h
               JOIN candidates c ON c.id = h.candidate ORDER BY h.id"""
        )
        return [(Judgement(*row[:6]), row[6]) for row in rows]

    def labels(self) -> dict[str, str]:
        """Hash → the name of a video in every file we write."""
        return dict(self.rows("SELECT hash, label FROM videos"))

    # writing, inside changes()

    def add_video(self, hash: str, label: str, name: str, duration: float) -> None:
        """Make a video known."""
        self._db.execute("INSERT OR IGNORE INTO videos VALUES (?, ?, ?, ?)", (hash, label, name, duration))

    def add_query(self, text: str, depth: int) -> int:
        """A new query without candidates; its id."""
        sql = "INSERT INTO queries (text, depth, created) VALUES (?, ?, ?)"
        new = self._db.execute(sql, (text, depth, time.time())).lastrowid
        assert new is not None
        return new

    def add_candidate(self, query: int, rank: int, batch: int, video: str, start: float, end: float) -> None:
        """A moment that may be judged; its score says no more than its rank."""
        self._db.execute(
            "INSERT INTO candidates (query, rank, batch, video, start, end, score) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (query, rank, batch, video, start, end, 1 / rank),
        )

    def open_batch(self, query: int, batch: int) -> None:
        """Have the batches up to this one judged, and no further."""
        self._db.execute("UPDATE queries SET batches = ? WHERE id = ?", (batch, query))

    def remove_query(self, query: int) -> None:
        """Take a query away with its candidates and all that was said about them."""
        self._db.execute("DELETE FROM queries WHERE id = ?", (query,))

    def add_judgement(self, candidate: int, annotator: str, relevance: int) -> int:
        """What somebody says from now on; the id."""
        sql = "INSERT INTO history (candidate, annotator, relevance, at) VALUES (?, ?, ?, ?)"
        new = self._db.execute(sql, (candidate, annotator, relevance, time.time())).lastrowid
        assert new is not None
        return new

    def take_back(self, annotator: str) -> Judgement | None:
        """Undo what somebody said last; None if there is nothing left."""
        rows = self.rows(
            """SELECT h.id, c.query, h.candidate, h.annotator, h.relevance, h.at FROM history h
               JOIN candidates c ON c.id = h.candidate
               WHERE h.annotator = ? AND h.undone IS NULL ORDER BY h.id DESC LIMIT 1""",
            (annotator,),
        )
        if not rows:
            return None
        last = Judgement(*rows[0])
        self._db.execute("UPDATE history SET undone = ? WHERE id = ?", (time.time(), last.id))
        return last


def _unusable(path: Path, e: sqlite3.Error) -> LibraryError:
    text = str(e)
    if "locked" in text or "busy" in text:
        return LibraryBusyError("others are writing judgements; try again in a moment")
    if "full" in text:
        return LibraryError(f"{path}: the disk is full; make room and try again")
    if "readonly" in text or "unable to open" in text:
        return LibraryError(f"{path}: cannot be opened or written ({text}); check the folder's rights")
    return LibraryError(f"{path}: the judgements cannot be used ({text}); move the file away to begin anew")


def reading(work: Callable[[Store], T]) -> Callable[[Library], T]:
    """Work on the judgements of a library, for a thread that has the library."""

    def on(library: Library) -> T:
        with Store(library.path) as store:
            return work(store)

    return on
