"""The catalog's file: one SQLite database in WAL mode, its tables, transactions and settings.

Any number of processes read while one writes, and a reader sees a state between two transactions, never inside one.
Everything that changes the library's meaning happens in ``changes()``.

Only whole videos are in ``videos``: a video's row, its cues and the segments that hold its vectors become visible in
one transaction. ``gone`` lists ids whose vectors still lie in segments although the video was removed or replaced;
compaction rewrites those segments and empties it. Paths are bytes, because a file's name need not be text.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from momentseek.core.errors import LibraryBusyError, LibraryError
from momentseek.library.location import folder_here, library_option
from momentseek.library.words import SPELLING_TOKENIZER, TOKENIZER

SCHEMA_VERSION = 2

SCHEMA = f"""
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE encoders (
    stream TEXT PRIMARY KEY, spec TEXT NOT NULL, name TEXT NOT NULL, fingerprint TEXT NOT NULL, dim INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE videos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    hash TEXT NOT NULL,
    duration REAL NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    rate TEXT NOT NULL,
    codec TEXT NOT NULL,
    clips INTEGER NOT NULL,
    cues INTEGER NOT NULL,
    shots BLOB NOT NULL,
    subtitles TEXT NOT NULL,
    added REAL NOT NULL,
    notes TEXT NOT NULL,
    audio INTEGER NOT NULL
);
CREATE INDEX videos_mtime ON videos (mtime_ns);
CREATE INDEX videos_hash ON videos (hash);
CREATE TABLE cues (
    id INTEGER PRIMARY KEY,
    video INTEGER NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL,
    language TEXT
);
CREATE INDEX cues_video ON cues (video, id);
CREATE VIRTUAL TABLE cue_words USING fts5 (
    text, content='cues', content_rowid='id', tokenize='{TOKENIZER}'
);
CREATE TRIGGER cues_in AFTER INSERT ON cues BEGIN
    INSERT INTO cue_words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER cues_out AFTER DELETE ON cues BEGIN
    INSERT INTO cue_words (cue_words, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE VIRTUAL TABLE name_words USING fts5 (text, tokenize='{TOKENIZER}');
CREATE TABLE segments (
    name TEXT PRIMARY KEY, stream TEXT NOT NULL, videos INTEGER NOT NULL, rows INTEGER NOT NULL, first INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE gone (video INTEGER PRIMARY KEY);
CREATE TABLE failures (
    path BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL,
    tries INTEGER NOT NULL,
    size INTEGER,
    mtime_ns INTEGER
) WITHOUT ROWID;
"""

TRANSCRIPTS = """
CREATE TABLE IF NOT EXISTS transcripts (
    video INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    language TEXT,
    heard REAL NOT NULL,
    words TEXT NOT NULL,
    whole INTEGER NOT NULL,
    problem TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TRIGGER IF NOT EXISTS transcripts_out AFTER DELETE ON videos BEGIN
    DELETE FROM transcripts WHERE video = old.id;
END;
CREATE TABLE IF NOT EXISTS rehearings (
    video INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    language TEXT,
    heard REAL NOT NULL,
    words TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TRIGGER IF NOT EXISTS rehearings_out AFTER DELETE ON videos BEGIN
    DELETE FROM rehearings WHERE video = old.id;
END;
CREATE TABLE IF NOT EXISTS cue_edits (
    hash TEXT NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (hash, start, end)
) WITHOUT ROWID;
"""
"""What was heard; what is being heard anew by another recogniser; and what people corrected, by the hash of a video's
bytes, so that it outlives the video's row. Libraries made before these tables get them when they are next written;
older releases pass them over, as they do those of readings."""

SOUNDS = """
CREATE TABLE IF NOT EXISTS listened (
    video INTEGER PRIMARY KEY, detector TEXT NOT NULL, fingerprint TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS sounds (
    id INTEGER PRIMARY KEY,
    video INTEGER NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    label TEXT NOT NULL,
    score REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS sounds_label ON sounds (label, video);
CREATE TRIGGER IF NOT EXISTS sounds_out AFTER DELETE ON videos BEGIN
    DELETE FROM listened WHERE video = old.id;
    DELETE FROM sounds WHERE video = old.id;
END;
"""
SAMPLINGS = """
CREATE TABLE IF NOT EXISTS samplings (video INTEGER PRIMARY KEY, sampling TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS samplings_out AFTER DELETE ON videos BEGIN
    DELETE FROM samplings WHERE video = old.id;
END;
"""
"""How the pictures of videos were sampled, where that is not exactly; the table is made with the first such video."""
READINGS = f"""
CREATE TABLE IF NOT EXISTS readings (
    video INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    done REAL NOT NULL,
    whole INTEGER NOT NULL,
    problem TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS read_frames (
    video INTEGER NOT NULL, start REAL NOT NULL, frame TEXT NOT NULL, PRIMARY KEY (video, start)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lines (
    id INTEGER PRIMARY KEY,
    video INTEGER NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL,
    at REAL NOT NULL,
    x REAL NOT NULL,
    y REAL NOT NULL,
    width REAL NOT NULL,
    height REAL NOT NULL,
    score REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS lines_video ON lines (video, id);
CREATE VIRTUAL TABLE IF NOT EXISTS line_words USING fts5 (
    text, content='lines', content_rowid='id', tokenize='{TOKENIZER}'
);
CREATE VIRTUAL TABLE IF NOT EXISTS line_spellings USING fts5 (
    text, content='lines', content_rowid='id', tokenize='{SPELLING_TOKENIZER}'
);
CREATE VIRTUAL TABLE IF NOT EXISTS line_vocabulary USING fts5vocab ('line_spellings', 'row');
CREATE TABLE IF NOT EXISTS line_terms (term TEXT PRIMARY KEY, reversed TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS line_terms_reversed ON line_terms (reversed);
CREATE TRIGGER IF NOT EXISTS lines_in AFTER INSERT ON lines BEGIN
    INSERT INTO line_words (rowid, text) VALUES (new.id, new.text);
    INSERT INTO line_spellings (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER IF NOT EXISTS lines_out AFTER DELETE ON lines BEGIN
    INSERT INTO line_words (line_words, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO line_spellings (line_spellings, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER IF NOT EXISTS readings_out AFTER DELETE ON videos BEGIN
    DELETE FROM readings WHERE video = old.id;
    DELETE FROM read_frames WHERE video = old.id;
    DELETE FROM lines WHERE video = old.id;
END;
"""
"""Tables of what is written in pictures: ``lines`` of videos that were wholly read, and the frames read of others.

``line_spellings`` knows words as they were read, without stemming, and ``line_terms`` lists them, forwards and
backwards: what differs from a word in one letter begins or ends like it.
"""

DESCRIPTIONS = f"""
CREATE TABLE IF NOT EXISTS descriptions (
    video INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    done REAL NOT NULL,
    whole INTEGER NOT NULL,
    problem TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS captions (
    id INTEGER PRIMARY KEY,
    video INTEGER NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS captions_video ON captions (video, id);
CREATE VIRTUAL TABLE IF NOT EXISTS caption_words USING fts5 (
    text, content='captions', content_rowid='id', tokenize='{TOKENIZER}'
);
CREATE TRIGGER IF NOT EXISTS captions_in AFTER INSERT ON captions BEGIN
    INSERT INTO caption_words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER IF NOT EXISTS captions_out AFTER DELETE ON captions BEGIN
    INSERT INTO caption_words (caption_words, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER IF NOT EXISTS descriptions_out AFTER DELETE ON videos BEGIN
    DELETE FROM descriptions WHERE video = old.id;
    DELETE FROM captions WHERE video = old.id;
END;
"""
"""Tables of what a model says of scenes; a library gets them when it is first described."""


CATALOG_FILE = "catalog.sqlite"
DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError, MemoryError)
"""What SQLite raises; the others where its message quotes damaged bytes, or a damaged number asks for too much."""
BUSY_SECONDS = 30.0
"""Seconds that a writer waits for another transaction; ours last milliseconds."""


class Database:
    """An open SQLite database of a library; use one per thread."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.path = folder / CATALOG_FILE
        self.read_only = False
        """Whether the database lies where nothing can be written, and was opened for reading all the same."""
        if not create and not self.path.is_file():
            what = f"momentseek add FOLDER{library_option(folder)}{folder_here(folder)}"
            raise LibraryError(f"{folder}: has no library; make one with: {what}")
        if not create and self.path.stat().st_size == 0:
            raise LibraryError(
                f"{self.path}: is empty, as a full disk leaves it; make the library again with: "
                f"momentseek add FOLDER{library_option(folder)}"
            )
        try:
            self._db = self._connect(create)
            found = self.get("version")
        except DATABASE_ERRORS as e:
            raise unusable(self.path, e) from None
        if found != SCHEMA_VERSION:
            self._db.close()
            raise LibraryError(f"{self.path}: {_other_format(found)}")

    def _connect(self, create: bool) -> sqlite3.Connection:
        self._db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA fullfsync = ON")  # a Mac's disk flushes its own memory only when asked so
            if create:
                self._create()
            self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as e:
            self._db.close()
            if create or e.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise
            return self._connect_read_only()
        except BaseException:
            self._db.close()
            raise
        return self._db

    def _connect_read_only(self) -> sqlite3.Connection:
        """Readers of a WAL database share an index beside it; where none can be made, nobody can write either."""
        log = self.path.with_name(f"{CATALOG_FILE}-wal")
        if log.exists() and log.stat().st_size:
            raise LibraryError(
                f"{self.path}: cannot be written, and its last changes wait in {log.name}; copy the library elsewhere"
            )
        address = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        self.read_only = True
        return db

    def _create(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        with self.changes():
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'settings'").fetchone():
                for statement in _statements(SCHEMA + TRANSCRIPTS + READINGS):
                    self._db.execute(statement)
                self.set("version", SCHEMA_VERSION)

    @property
    def has_transcripts(self) -> bool:
        """Whether the library has a place for transcripts; ``make_transcripts`` gives one to an older library."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = 'transcripts'"))

    @property
    def has_edits(self) -> bool:
        """Whether the library has a place for corrected transcripts; ``make_transcripts`` gives one to an older one."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = 'cue_edits'"))

    def make_transcripts(self) -> None:
        """Make the place for transcripts and their corrections in a library that has none."""
        if not (self.has_transcripts and self.has_edits):
            self._make_tables(TRANSCRIPTS)

    @property
    def has_readings(self) -> bool:
        """Whether the library has a place for what is written in pictures, which ``make_readings`` gives it."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = 'line_terms'"))

    def make_readings(self) -> None:
        """Make the place for what is written in pictures in a library that has none."""
        if not self.has_readings:
            self._make_tables(READINGS)

    @property
    def has_descriptions(self) -> bool:
        """Whether the library has a place for what a model says of scenes, which ``make_descriptions`` gives it."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = 'captions'"))

    def make_descriptions(self) -> None:
        """Make the place for what a model says of scenes in a library that has none."""
        if not self.has_descriptions:
            self._make_tables(DESCRIPTIONS)

    @property
    def has_samplings(self) -> bool:
        """Whether any video of the library was sampled otherwise than exactly; see ``make_samplings``."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = 'samplings'"))

    def make_samplings(self) -> None:
        """Make the place for how videos are sampled in a library that has none."""
        if not self.has_samplings:
            self._make_tables(SAMPLINGS)

    @property
    def has_sounds(self) -> bool:
        """Whether the library has a place for sounds other than speech, which ``make_sounds`` gives it."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE name = 'sounds'"))

    def make_sounds(self) -> None:
        """Make the place for sounds other than speech in a library that has none."""
        if not self.has_sounds:
            self._make_tables(SOUNDS)

    def _make_tables(self, script: str) -> None:
        with self.changes():
            for statement in _statements(script):
                self._db.execute(statement)

    def close(self) -> None:
        """Close the database's file."""
        self._db.close()

    @contextmanager
    def changes(self) -> Iterator[sqlite3.Connection]:
        """Change the database in one transaction: all of the changes are made, or none."""
        try:
            with transaction(self._db, "BEGIN IMMEDIATE"):
                yield self._db
        except DATABASE_ERRORS as e:
            raise unusable(self.path, e) from None

    @contextmanager
    def view(self) -> Iterator[None]:
        """Read the same state several times, whatever others commit meanwhile."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):
                self._db.execute("COMMIT")

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that an SQL query finds; for the modules of this package only."""
        try:
            return self._db.execute(sql, values).fetchall()
        except DATABASE_ERRORS as e:
            raise unusable(self.path, e) from None

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Execute an SQL statement inside ``changes()``; for the modules of this package only."""
        self._db.execute(sql, values)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a setting of the library."""
        rows = self.rows("SELECT value FROM settings WHERE key = ?", (key,))
        return json.loads(rows[0][0]) if rows else default

    def set(self, key: str, value: Any) -> None:
        """Store a setting of the library, inside ``changes()`` or on its own."""
        self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, json.dumps(value)))

    def generation(self) -> int:
        """A number that changes whenever another connection has committed something; cheap to ask for."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def state(self) -> tuple[int, int]:
        """Two numbers that change whenever anybody, this connection included, has changed something."""
        return self.generation(), self._db.total_changes


def unusable(path: Path, e: Exception) -> LibraryError:
    """A database's error as one that tells a user what to do."""
    text = str(e) if isinstance(e, sqlite3.Error) else "malformed content"
    if "locked" in text or "busy" in text:
        return LibraryBusyError(f"{path}: another process has been writing for {BUSY_SECONDS:.0f} s; try again later")
    if "full" in text:
        return LibraryError(f"{path}: the disk is full; make room and run the command again")
    if "readonly" in text or "unable to open" in text:
        return LibraryError(f"{path}: cannot be opened or written ({text}); check the folder's rights")
    if "no such table: settings" in text:
        return LibraryError(
            f"{path}: holds no library yet, as a first add that was stopped leaves it; run: "
            f"momentseek add FOLDER{library_option(path.parent)}"
        )
    if "malformed" in text or "not a database" in text or "no such table" in text:
        return LibraryError(f"{path}: is damaged ({text}); move it away and add the videos again")
    return LibraryError(f"{path}: the catalog cannot be used ({text})")


def _other_format(found: Any) -> str:
    """What is wrong with a library of another format, and what to do.

    >>> _other_format(0)
    'was made by an older release (format 0); move it away and add the videos again'
    """
    if isinstance(found, int) and found < SCHEMA_VERSION:
        return f"was made by an older release (format {found}); move it away and add the videos again"
    return f"was made by another release (format {found}); update momentseek"


def _statements(script: str) -> Iterator[str]:
    """Statements of a script; ``executescript`` would commit the open transaction."""
    statement = ""
    for piece in script.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    """Make a transaction of what is done inside: all of it is committed, or nothing."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
