"""JudgementStore: the queries, candidate moments and judgements of a library, and what annotators agree on.

Any number of threads and processes read while one writes. Everything that depends on what others have said
happens in ``changes()``, one transaction. Videos are known by the hash of their bytes, so that judgements outlive a
file that is removed and added again. Rows of ``history`` are only ever added: what an annotator says about a candidate
is their latest row that was not undone.

The consensus rule is that of ``benchmarks``: two annotators judge a pair of query and moment; if they differ by more
than 1, two more do; nobody else is asked, because the rule knows two and four labels only.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, cast

from momentseek.benchmarks.datasets.annotation.agreement import measure_agreement
from momentseek.benchmarks.datasets.annotation.candidates import AnnotationCandidate
from momentseek.benchmarks.datasets.annotation.consensus import (
    LABELS_PER_PAIR,
    Consensus,
    find_consensus,
    label_distributions,
    measure_drift,
)
from momentseek.benchmarks.datasets.annotation.consensus_report import as_json
from momentseek.benchmarks.datasets.annotation.labels import group_labels
from momentseek.core.errors import LibraryBusyError, LibraryError
from momentseek.server.database import DatabaseLocation, ServerDatabase
from momentseek.server.errors import UnknownIdError


@dataclass(frozen=True)
class QueryRow:
    """A query whose candidate moments are judged."""

    id: int
    text: str
    depth: int
    """Number of candidates in a batch."""
    batches: int
    """Number of batches that are judged."""
    created: float
    """Time at which the query was added, in seconds since 1970."""


@dataclass(frozen=True)
class CandidateRow:
    """A moment that may be judged for a query.

    >>> row = CandidateRow(7, 2, "a dog", 3, 1, "9f86d0", "park.mp4", "park.mp4", 60.0, 1.5, 6.0, 0.25)
    >>> row.pair, row.candidate.video
    ('2/7', 'park.mp4')
    """

    id: int
    query: int
    text: str
    rank: int
    batch: int
    video: str
    """The hash of the video's bytes."""
    label: str
    """What exported files call the video: its name, made unique if another video has the same."""
    name: str
    duration: float
    start: float
    end: float
    score: float

    @property
    def pair(self) -> str:
        """The id of the pair of query and moment, as label files have it."""
        return f"{self.query}/{self.id}"

    @property
    def candidate(self) -> AnnotationCandidate:
        """The candidate in the form in which the tools for building benchmarks take it."""
        return AnnotationCandidate(
            self.pair, str(self.query), self.text, self.label, self.start, self.end, self.score, self.rank, self.batch,
            "", self.duration,
        )  # fmt: skip


@dataclass(frozen=True)
class JudgementRow:
    """How relevant one annotator finds a candidate, from 0 to 4."""

    id: int
    query: int
    candidate: int
    annotator: str
    relevance: int
    at: float
    """Time of the judgement, in seconds since 1970."""

    @property
    def label(self) -> tuple[str, str, int]:
        """Pair id, annotator and level, as a row of a label file."""
        return f"{self.query}/{self.candidate}", self.annotator, self.relevance


Row = TypeVar("Row", CandidateRow, JudgementRow)


def group_by_query(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Query id → its rows, in their order."""
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.query, []).append(row)
    return groups


AnnotatorRule = Literal["one", "two"]
"""``two``: TVR-Ranking's, two annotators and four where they disagree. ``one``: a single judgement is enough."""


@dataclass(frozen=True)
class JudgedPair:
    """A pair of query and moment with its labels so far.

    ``outcome`` is ``kept``, ``discarded``, or ``waiting`` while more annotators are needed.
    """

    outcome: str
    reason: str
    needs: int
    """Number of annotators who still have to judge it."""
    relevance: int | None = None
    """The level from 0 to 4 on which the annotators agree, if they do."""
    labels: tuple[tuple[str, int], ...] = ()
    """Annotators and their levels, in the order in which they judged."""

    def is_open_for(self, annotator: str) -> bool:
        """Whether this annotator should judge it."""
        return self.needs > 0 and not self.judged_by(annotator)

    def judged_by(self, annotator: str) -> bool:
        """Whether this annotator has judged it."""
        return any(name == annotator for name, _ in self.labels)


ONE_ANNOTATOR_REASON = "one annotator judges alone"
UNJUDGED_PAIR = JudgedPair("waiting", "no label", LABELS_PER_PAIR[0])


def label_consensus(judgements: Sequence[JudgementRow]) -> Consensus | None:
    """The consensus rule applied to all judgements; None if there are none. One or three labels are incomplete."""
    if not judgements:
        return None
    return find_consensus(group_labels((j.label for j in judgements), "judgements"), incomplete="drop")


def judged_pairs(
    ids: Iterable[str], judgements: Sequence[JudgementRow], rule: AnnotatorRule = "two"
) -> dict[str, JudgedPair]:
    """Pair id → the pair with its labels and outcome, for every id. Where a pair has several labels, both rules agree.

    >>> rows = [JudgementRow(i, 1, c, who, level, 0.0) for i, (c, who, level) in enumerate(
    ...     [(1, "ann", 3), (1, "bob", 4), (2, "ann", 0), (2, "bob", 2), (3, "ann", 1)])]
    >>> pairs = judged_pairs(["1/1", "1/2", "1/3", "1/4"], rows)
    >>> {id: (pair.outcome, pair.relevance, pair.needs) for id, pair in pairs.items()}
    {'1/1': ('kept', 4, 0), '1/2': ('waiting', None, 2), '1/3': ('waiting', None, 1), '1/4': ('waiting', None, 2)}
    >>> alone = judged_pairs(["1/3", "1/4"], rows, "one")
    >>> {id: (pair.outcome, pair.relevance, pair.needs) for id, pair in alone.items()}
    {'1/3': ('kept', 1, 0), '1/4': ('waiting', None, 1)}
    """
    result = label_consensus(judgements)
    judged: dict[str, JudgedPair] = {}
    for decision in result.decisions() if result else ():
        labels = decision.evidence["labels"]
        by_annotator = tuple(zip(decision.evidence["workers"], labels, strict=True))
        needs = annotators_needed(len(labels), decision.outcome == "kept")
        if rule == "one" and len(labels) == 1:
            judged[decision.subject] = JudgedPair("kept", ONE_ANNOTATOR_REASON, 0, labels[0], by_annotator)
            continue
        outcome = "waiting" if needs else "discarded" if decision.outcome == "dropped" else decision.outcome
        judged[decision.subject] = JudgedPair(
            outcome, decision.reason, needs, decision.evidence.get("relevance"), by_annotator
        )
    unjudged = UNJUDGED_PAIR if rule == "two" else replace(UNJUDGED_PAIR, needs=1)
    return {pair: judged.get(pair, unjudged) for pair in ids}


def annotators_needed(labels: int, kept: bool) -> int:
    """Number of annotators that a pair still needs, by the number of labels it has.

    >>> [annotators_needed(n, False) for n in range(6)], annotators_needed(2, True)
    ([2, 1, 2, 1, 0, 0], 0)
    """
    return 0 if kept else next((size - labels for size in LABELS_PER_PAIR if size > labels), 0)


def consensus_statistics(judgements: Sequence[JudgementRow]) -> dict[str, Any] | None:
    """The statistics that ``momentseek data consensus --json`` reports; None while no pair has two labels."""
    found = label_consensus(judgements)
    if found is None or not found.complete.any():
        return None
    return as_json(found, measure_agreement(found.labels), measure_drift(found), label_distributions(found))


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


def with_store(place: DatabaseLocation, work: Callable[[JudgementStore], T]) -> Callable[[object], T]:
    """Turn work on a store into work for a thread that has a library, which opens and closes the store."""

    def on(_: object) -> T:
        with JudgementStore(place) as store:
            return work(store)

    return on
