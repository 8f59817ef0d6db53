"""JudgementStore: the queries, candidate moments and judgements of a library in a database.

Any number of threads and processes can read while one writes. A change that depends on other people's judgements
happens in ``changes()``, one transaction. Videos are identified by the hash of their bytes, so that judgements survive
when a file is removed and added again. Rows of ``history`` are never deleted singly: an annotator's judgement of a
candidate is their latest row that was not undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import sqlalchemy as sa

from momentseek.server.database import BigId, DatabaseLocation, ServerDatabase, columns
from momentseek.server.errors import UnknownIdError
from momentseek.server.judging.consensus import AnnotatorRule, CandidateRow, JudgementRow, QueryRow

JUDGEMENTS_FILE = "judgements.sqlite"
T = TypeVar("T")
RuleSetting = Literal["auto", "one", "two"]
"""``auto``: one annotator is enough while only one has judged."""

TABLES = sa.MetaData()
VIDEOS = sa.Table(
    "videos",
    TABLES,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("label", sa.Text, nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("duration", sa.Double, nullable=False),
    sqlite_with_rowid=False,
)
QUERIES = sa.Table(
    "queries",
    TABLES,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("text", sa.Text, nullable=False, unique=True),
    sa.Column("depth", sa.Integer, nullable=False),
    sa.Column("batches", sa.Integer, nullable=False, server_default="1"),
    sa.Column("created", sa.Double, nullable=False),
    sqlite_autoincrement=True,
)
CANDIDATES = sa.Table(
    "candidates",
    TABLES,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("query", sa.ForeignKey(QUERIES.c.id, ondelete="CASCADE"), nullable=False),
    *columns(sa.Integer, "rank", "batch"),
    sa.Column("video", sa.ForeignKey(VIDEOS.c.hash), nullable=False),
    *columns(sa.Double, "start", "end", "score"),
    sa.UniqueConstraint("query", "rank"),
    sqlite_autoincrement=True,
)
HISTORY = sa.Table(
    "history",
    TABLES,
    sa.Column("id", BigId, primary_key=True),
    sa.Column("candidate", sa.ForeignKey(CANDIDATES.c.id, ondelete="CASCADE"), nullable=False),
    sa.Column("annotator", sa.Text, nullable=False),
    sa.Column("relevance", sa.Integer, sa.CheckConstraint("relevance BETWEEN 0 AND 4"), nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("undone", sa.Double),
    sqlite_autoincrement=True,
)
sa.Index("history_candidate", HISTORY.c.candidate, HISTORY.c.annotator, HISTORY.c.id)
_STANDING = HISTORY.c.undone.is_(None)
sa.Index("history_annotator", HISTORY.c.annotator, HISTORY.c.id, sqlite_where=_STANDING, postgresql_where=_STANDING)
SETTINGS = sa.Table(
    "settings",
    TABLES,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)
_JUDGEMENTS = sa.select(
    HISTORY.c.id, CANDIDATES.c.query, HISTORY.c.candidate, HISTORY.c.annotator, HISTORY.c.relevance, HISTORY.c.at
).join(CANDIDATES)
"""The columns of JudgementRow."""


def _add_settings(db: sa.Connection) -> None:
    """Migrate to version 2: add the table of settings."""
    SETTINGS.create(db, checkfirst=True)


class JudgementStore(ServerDatabase):
    """The open database of a library's judgements; use it in one thread and close it soon."""

    name, contents, migrations = "judgements", "judgements", (TABLES.create_all, _add_settings)

    # reading

    def queries(self) -> list[QueryRow]:
        """All queries that are judged, oldest first."""
        return self._queries(sa.select(QUERIES).order_by(QUERIES.c.id))

    def query(self, id: int) -> QueryRow:
        """The query with an id; raises UnknownIdError if there is none."""
        found = self._queries(sa.select(QUERIES).where(QUERIES.c.id == id))
        if not found:
            raise UnknownIdError(f"there is no query {id} to judge; GET /api/v1/judging/queries lists them")
        return found[0]

    def find_query(self, text: str) -> QueryRow | None:
        """The query with exactly this text, if there is one."""
        found = self._queries(sa.select(QUERIES).where(QUERIES.c.text == text))
        return found[0] if found else None

    def _queries(self, asked: sa.Select[Any]) -> list[QueryRow]:
        return [QueryRow(*row) for row in self.rows(asked)]

    def candidates(self, query: int | None = None) -> list[CandidateRow]:
        """The moments to be judged, of one query or of all: by query, then by rank."""
        c, v = CANDIDATES.c, VIDEOS.c
        columns = (c.id, c.query, QUERIES.c.text, c.rank, c.batch, c.video, v.label, v.name, v.duration, c.start, c.end)
        asked = sa.select(*columns, c.score).join(QUERIES).join(VIDEOS).where(c.batch <= QUERIES.c.batches)
        asked = asked if query is None else asked.where(c.query == query)
        return [CandidateRow(*row) for row in self.rows(asked.order_by(c.query, c.rank))]

    def judgements(self, query: int | None = None) -> list[JudgementRow]:
        """Every annotator's current judgements, of one query or of all, in the order in which they were made."""
        h, later = HISTORY.c, HISTORY.alias()
        same = (later.c.candidate == h.candidate) & (later.c.annotator == h.annotator)
        replaced = sa.select(later.c.id).where(same, later.c.undone.is_(None), later.c.id > h.id).exists()
        asked = _JUDGEMENTS.where(h.undone.is_(None), ~replaced)
        asked = asked if query is None else asked.where(CANDIDATES.c.query == query)
        return [JudgementRow(*row) for row in self.rows(asked.order_by(h.id))]

    def history(self) -> list[tuple[JudgementRow, float | None]]:
        """All judgements ever made, each with the time when it was undone, or None; times are seconds since 1970."""
        rows = self.rows(_JUDGEMENTS.add_columns(HISTORY.c.undone).order_by(HISTORY.c.id))
        return [(JudgementRow(*row[:6]), row[6]) for row in rows]

    def annotators(self) -> list[str]:
        """Everybody with a judgement that was not undone."""
        return sorted(row[0] for row in self.rows(sa.select(HISTORY.c.annotator).distinct().where(_STANDING)))

    def rule_setting(self) -> RuleSetting:
        """The setting for the number of annotators per moment."""
        rows = self.rows(sa.select(SETTINGS.c.value).where(SETTINGS.c.key == "rule"))
        return cast("RuleSetting", rows[0][0]) if rows else "auto"

    def rule(self, *also: str) -> AnnotatorRule:
        """The rule in force for the number of annotators per moment; ``also`` are people who are about to judge."""
        setting = self.rule_setting()
        if setting != "auto":
            return setting
        return "one" if len({*self.annotators(), *also}) <= 1 else "two"

    def labels(self) -> dict[str, str]:
        """Hash of a video → its name in exported files."""
        return dict(map(tuple, self.rows(sa.select(VIDEOS.c.hash, VIDEOS.c.label))))

    # writing, inside changes()

    def set_rule(self, setting: RuleSetting) -> None:
        """Set the rule for the number of annotators per moment."""
        self.run(sa.delete(SETTINGS).where(SETTINGS.c.key == "rule"))
        self.run(sa.insert(SETTINGS).values(key="rule", value=setting))

    def add_video(self, hash: str, label: str, name: str, duration: float) -> None:
        """Add a video that has candidates, unless it exists already."""
        self.insert_new(VIDEOS, hash=hash, label=label, name=name, duration=duration)

    def add_query(self, text: str, depth: int) -> int:
        """Add a query without candidates; returns its id."""
        adding = sa.insert(QUERIES).values(text=text, depth=depth, created=time.time())
        return int(self.run(adding.returning(QUERIES.c.id)).scalar_one())

    def add_candidate(self, query: int, rank: int, batch: int, video: str, start: float, end: float) -> None:
        """Add a moment that may be judged; its score is only 1 / rank."""
        moment = {"video": video, "start": start, "end": end, "score": 1 / rank}
        self.run(sa.insert(CANDIDATES).values(query=query, rank=rank, batch=batch, **moment))

    def open_batch(self, query: int, batch: int) -> None:
        """Set how many batches of a query are judged."""
        self.run(sa.update(QUERIES).where(QUERIES.c.id == query).values(batches=batch))

    def remove_query(self, query: int) -> None:
        """Remove a query with its candidates and all judgements of them."""
        self.run(sa.delete(QUERIES).where(QUERIES.c.id == query))

    def add_judgement(self, candidate: int, annotator: str, relevance: int) -> int:
        """Add a judgement, which replaces the annotator's earlier one of the same candidate; returns its id."""
        values = {"candidate": candidate, "annotator": annotator, "relevance": relevance, "at": time.time()}
        return int(self.run(sa.insert(HISTORY).values(values).returning(HISTORY.c.id)).scalar_one())

    def undo_last(self, annotator: str) -> JudgementRow | None:
        """Undo an annotator's last judgement and return it; None if there is none left."""
        asked = _JUDGEMENTS.where(HISTORY.c.annotator == annotator, _STANDING).order_by(HISTORY.c.id.desc()).limit(1)
        rows = self.rows(asked)
        if not rows:
            return None
        last = JudgementRow(*rows[0])
        self.run(sa.update(HISTORY).where(HISTORY.c.id == last.id).values(undone=time.time()))
        return last


def with_store(place: DatabaseLocation, work: Callable[[JudgementStore], T]) -> Callable[[object], T]:
    """Wrap work on a store as work for a library's thread; the wrapper opens and closes the store."""

    def on(_: object) -> T:
        with JudgementStore(place) as store:
            return work(store)

    return on
