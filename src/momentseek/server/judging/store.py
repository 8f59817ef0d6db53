"""JudgementStore: the judgements of a library, a database of its own; all of its SQL is here.

Any number of threads and processes read while one writes. Everything that depends on what others have said
happens in ``changes()``, one transaction. Videos are known by the hash of their bytes, so that judgements outlive a
file that is removed and added again. Rows of ``history`` are only ever added: what an annotator says about a candidate
is their latest row that was not undone.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from momentseek.errors import LibraryBusyError, LibraryError
from momentseek.server.database import DatabasePlace, ServerDatabase
from momentseek.server.errors import UnknownIdError
from momentseek.server.judging.consensus import AnnotatorRule
from momentseek.server.judging.rows import CandidateRow, JudgementRow, QueryRow

JUDGEMENTS_FILE = "judgements.sqlite"
LOCK_WAIT_SECONDS = 10.0
"""How long a writer waits for another one."""
T = TypeVar("T")
RuleSetting = Literal["auto", "one", "two"]
"""``auto``: one annotator is enough while only one has judged."""

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE videos (
    hash TEXT PRIMARY KEY, label TEXT NOT NULL UNIQUE, name TEXT NOT NULL, duration REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE queries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL UNIQUE,
    depth INTEGER NOT NULL,
    batches INTEGER NOT NULL DEFAULT 1,
    created REAL NOT NULL
);
CREATE TABLE candidates (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    query INTEGER NOT NULL REFERENCES queries ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    video TEXT NOT NULL REFERENCES videos,
    start REAL NOT NULL,
    "end" REAL NOT NULL,
    score REAL NOT NULL,
    UNIQUE (query, rank)
);
CREATE TABLE history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    candidate INTEGER NOT NULL REFERENCES candidates ON DELETE CASCADE,
    annotator TEXT NOT NULL,
    relevance INTEGER NOT NULL CHECK (relevance BETWEEN 0 AND 4),
    at REAL NOT NULL,
    undone REAL
);
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX history_candidate ON history (candidate, annotator, id);
CREATE INDEX history_annotator ON history (annotator, id) WHERE undone IS NULL;
"""

_CANDIDATES = """SELECT c.id, c.query, q.text, c.rank, c.batch, c.video, v.label, v.name, v.duration, c.start, c."end",
                        c.score FROM candidates c JOIN queries q ON q.id = c.query JOIN videos v ON v.hash = c.video
                 WHERE c.batch <= q.batches AND {only} ORDER BY c.query, c.rank"""
_LATEST = """SELECT h.id, c.query, h.candidate, h.annotator, h.relevance, h.at FROM history h
             JOIN candidates c ON c.id = h.candidate WHERE h.undone IS NULL AND {only} AND NOT EXISTS (
                 SELECT 1 FROM history later WHERE later.candidate = h.candidate AND later.annotator = h.annotator
                 AND later.undone IS NULL AND later.id > h.id)
             ORDER BY h.id"""


class JudgementStore(ServerDatabase):
    """The open database of a library's judgements; use it in one thread and close it soon."""

    name, schema, version, wait_seconds = "judgements", _SCHEMA, SCHEMA_VERSION, LOCK_WAIT_SECONDS

    def explain(self, e: Exception) -> LibraryError:
        """An error of SQLite as one that says what to do."""
        text = str(e) if isinstance(e, sqlite3.Error) else "malformed content"
        if "locked" in text or "busy" in text:
            return LibraryBusyError("another process is writing judgements; try again in a moment")
        if "full" in text:
            return LibraryError(f"{self.path}: the disk is full; make room and try again")
        if "readonly" in text or "unable to open" in text:
            return LibraryError(f"{self.path}: cannot be opened or written ({text}); check the folder's permissions")
        return LibraryError(f"{self.path}: the judgements cannot be used ({text}); move the file away to start afresh")

    # reading

    def queries(self) -> list[QueryRow]:
        """All queries that are judged, oldest first."""
        return [
            QueryRow(*row) for row in self._rows("SELECT id, text, depth, batches, created FROM queries ORDER BY id")
        ]

    def query(self, id: int) -> QueryRow:
        """The query with an id; raises UnknownIdError if there is none."""
        rows = self._rows("SELECT id, text, depth, batches, created FROM queries WHERE id = ?", (id,))
        if not rows:
            raise UnknownIdError(f"there is no query {id} to judge; GET /api/v1/judging/queries lists them")
        return QueryRow(*rows[0])

    def find_query(self, text: str) -> QueryRow | None:
        """The query with exactly this text, if there is one."""
        rows = self._rows("SELECT id, text, depth, batches, created FROM queries WHERE text = ?", (text,))
        return QueryRow(*rows[0]) if rows else None

    def candidates(self, query: int | None = None) -> list[CandidateRow]:
        """The moments to be judged, of one query or of all: by query, then by rank."""
        return [CandidateRow(*row) for row in self._rows_of_query(_CANDIDATES, query)]

    def judgements(self, query: int | None = None) -> list[JudgementRow]:
        """Every annotator's current judgements, of one query or of all, in the order in which they were made."""
        return [JudgementRow(*row) for row in self._rows_of_query(_LATEST, query)]

    def _rows_of_query(self, sql: str, query: int | None) -> list[Any]:
        if query is None:
            return self._rows(sql.format(only="1 = 1"))
        return self._rows(sql.format(only="c.query = ?"), (query,))

    def history(self) -> list[tuple[JudgementRow, float | None]]:
        """All judgements ever made, each with the time when it was undone, or None; times are seconds since 1970."""
        rows = self._rows(
            """SELECT h.id, c.query, h.candidate, h.annotator, h.relevance, h.at, h.undone FROM history h
               JOIN candidates c ON c.id = h.candidate ORDER BY h.id"""
        )
        return [(JudgementRow(*row[:6]), row[6]) for row in rows]

    def annotators(self) -> list[str]:
        """Everybody with a judgement that was not undone."""
        return sorted(row[0] for row in self._rows("SELECT DISTINCT annotator FROM history WHERE undone IS NULL"))

    def rule_setting(self) -> RuleSetting:
        """What was set of how many annotators a moment takes; stores of the first release had no settings."""
        if not self._db.has_table("settings"):
            return "auto"
        rows = self._rows("SELECT value FROM settings WHERE key = 'rule'")
        return cast("RuleSetting", rows[0][0]) if rows else "auto"

    def rule(self, *also: str) -> AnnotatorRule:
        """How many annotators a moment takes; ``also`` are people who are about to judge."""
        setting = self.rule_setting()
        if setting != "auto":
            return setting
        return "one" if len({*self.annotators(), *also}) <= 1 else "two"

    def labels(self) -> dict[str, str]:
        """Hash → what exported files call the video."""
        return dict(self._rows("SELECT hash, label FROM videos"))

    # writing, inside changes()

    def set_rule(self, setting: RuleSetting) -> None:
        """Set how many annotators a moment takes."""
        self._db.execute("CREATE TABLE IF NOT EXISTS settings (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        self._db.execute(
            "INSERT INTO settings VALUES ('rule', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (setting,)
        )

    def add_video(self, hash: str, label: str, name: str, duration: float) -> None:
        """Add a video that has candidates, unless it is there already."""
        self._db.execute("INSERT INTO videos VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (hash, label, name, duration))

    def add_query(self, text: str, depth: int) -> int:
        """Add a query without candidates; returns its id."""
        sql = "INSERT INTO queries (text, depth, created) VALUES (?, ?, ?) RETURNING id"
        return int(self._db.execute(sql, (text, depth, time.time())).fetchall()[0][0])

    def add_candidate(self, query: int, rank: int, batch: int, video: str, start: float, end: float) -> None:
        """Add a moment that may be judged; its score is only 1 / rank."""
        self._db.execute(
            """INSERT INTO candidates (query, rank, batch, video, start, "end", score) VALUES (?, ?, ?, ?, ?, ?, ?)""",
            (query, rank, batch, video, start, end, 1 / rank),
        )

    def open_batch(self, query: int, batch: int) -> None:
        """Set how many batches of a query are judged."""
        self._db.execute("UPDATE queries SET batches = ? WHERE id = ?", (batch, query))

    def remove_query(self, query: int) -> None:
        """Remove a query with its candidates and all judgements of them."""
        self._db.execute("DELETE FROM queries WHERE id = ?", (query,))

    def add_judgement(self, candidate: int, annotator: str, relevance: int) -> int:
        """Add a judgement, which replaces the annotator's earlier one of the same candidate; returns its id."""
        sql = "INSERT INTO history (candidate, annotator, relevance, at) VALUES (?, ?, ?, ?) RETURNING id"
        return int(self._db.execute(sql, (candidate, annotator, relevance, time.time())).fetchall()[0][0])

    def undo_last(self, annotator: str) -> JudgementRow | None:
        """Undo an annotator's last judgement and return it; None if there is none left."""
        rows = self._rows(
            """SELECT h.id, c.query, h.candidate, h.annotator, h.relevance, h.at FROM history h
               JOIN candidates c ON c.id = h.candidate
               WHERE h.annotator = ? AND h.undone IS NULL ORDER BY h.id DESC LIMIT 1""",
            (annotator,),
        )
        if not rows:
            return None
        last = JudgementRow(*rows[0])
        self._db.execute("UPDATE history SET undone = ? WHERE id = ?", (time.time(), last.id))
        return last


def with_store(place: DatabasePlace, work: Callable[[JudgementStore], T]) -> Callable[[object], T]:
    """Turn work on a store into work for a thread that has a library, which opens and closes the store."""

    def on(_: object) -> T:
        with JudgementStore(place) as store:
            return work(store)

    return on
