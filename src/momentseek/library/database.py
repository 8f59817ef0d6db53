"""The catalog's file: one SQLite database in WAL mode, its tables, transactions and settings.

Any number of processes read while one writes, and a reader sees a state between two transactions, never inside one.
Everything that changes the library's meaning happens in ``changes()``.

Only whole videos are in ``videos``: a video's row, its cues and the segments that hold its vectors become visible in
one transaction. ``gone`` lists ids whose vectors still lie in segments although the video was removed or replaced;
compaction rewrites those segments and empties it. Paths are bytes, because a file name need not be valid text.

Timed text is in ``cues``, whatever made it; ``tracks`` says how far each producer is with each video, and
``track_parts`` keeps its results for a video that is not finished yet (:mod:`momentseek.library.timed_text`).
"""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from momentseek.core.atomic import flush_folder
from momentseek.core.errors import LibraryBusyError, LibraryError
from momentseek.library.location import SHARDS_FILE, folder_here, library_option, place_text
from momentseek.library.origin import ORIGIN_FILE
from momentseek.library.words import SPELLING_TOKENIZER, TOKENIZER

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
    audio INTEGER NOT NULL,
    sampling TEXT NOT NULL
);
CREATE INDEX videos_mtime ON videos (mtime_ns);
CREATE INDEX videos_hash ON videos (hash);
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
CREATE TABLE kinds (
    name TEXT PRIMARY KEY, family TEXT NOT NULL, copied INTEGER NOT NULL, spelt INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE tracks (
    video INTEGER NOT NULL,
    kind TEXT NOT NULL,
    whole INTEGER NOT NULL,
    model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    language TEXT,
    done REAL NOT NULL,
    problem TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (video, kind, whole)
) WITHOUT ROWID;
CREATE TABLE track_parts (
    video INTEGER NOT NULL, kind TEXT NOT NULL, done REAL NOT NULL, content TEXT NOT NULL,
    PRIMARY KEY (video, kind, done)
) WITHOUT ROWID;
CREATE TABLE cues (
    id INTEGER PRIMARY KEY,
    video INTEGER NOT NULL,
    kind TEXT NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL,
    language TEXT,
    frame REAL,
    score REAL,
    box TEXT,
    words TEXT
);
CREATE INDEX cues_of_track ON cues (kind, video, id);
CREATE TABLE terms (
    kind TEXT NOT NULL, term TEXT NOT NULL, reversed TEXT NOT NULL, PRIMARY KEY (kind, term)
) WITHOUT ROWID;
CREATE INDEX terms_reversed ON terms (kind, reversed);
CREATE TABLE cue_edits (
    hash TEXT NOT NULL,
    start REAL NOT NULL,
    end REAL NOT NULL,
    text TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (hash, start, end)
) WITHOUT ROWID;
CREATE TRIGGER videos_out AFTER DELETE ON videos BEGIN
    DELETE FROM tracks WHERE video = old.id;
    DELETE FROM track_parts WHERE video = old.id;
    DELETE FROM cues WHERE video = old.id AND kind IN (SELECT name FROM kinds);
END;
"""
"""The tables. ``cue_edits`` are corrections by people, keyed by the hash of a video's bytes, so that they survive its
row. ``terms`` lists the words of kinds that may be misspelt, forwards and backwards, because words that differ in one
letter begin or end alike."""


@dataclass(frozen=True)
class TrackKind:
    """A kind of timed text: speech, text on screen, descriptions or sounds."""

    name: str
    like: str = ""
    """Another kind with which it is searched and shown; empty for a kind that is searched on its own."""
    waits: str = "width > 0"
    """SQL condition on ``videos`` that may have such a track."""
    copied: bool = True
    """Whether a copy of a video gets the track of the original."""
    text: bool = True
    """Whether it has cues; a track without cues only records the progress of a producer."""
    spelt: bool = False
    """Whether its words may be misspelt, as those of OCR are, so that they are also indexed without stemming."""

    @property
    def family(self) -> str:
        """The kind with which it is searched: another one, or itself."""
        return self.like or self.name

    @property
    def indices(self) -> tuple[str, ...]:
        """The full-text indices of its family."""
        return (f"{self.family}_words", *((f"{self.family}_spellings",) if self.spelt else ()))


SPEECH = TrackKind("speech", waits="audio AND cues = 0", copied=False)
OCR = TrackKind("ocr", spelt=True)
CAPTIONS = TrackKind("captions")
SOUNDS = TrackKind("sounds", waits="audio", copied=False)
PICTURES = TrackKind("pictures", copied=False, text=False)
KINDS = (SPEECH, OCR, CAPTIONS, SOUNDS)
"""The kinds that every library has; ``Database.add_kind`` adds another."""


def kind_script(kind: TrackKind) -> str:
    """SQL that adds a kind, with its own full-text index unless it is searched with another kind.

    Each family has its own index, because BM25 weighs a word by how rare it is among texts of the same family.
    """
    name = kind.name
    if not (name.isidentifier() and kind.family.isidentifier()):
        raise ValueError(f"a kind of track cannot be called {name!r}")
    values = f"'{name}', '{kind.family}', {int(kind.copied)}, {int(kind.spelt)}"
    added = f"INSERT INTO kinds (name, family, copied, spelt) VALUES ({values});"
    if kind.like:
        return added
    members = f"IN (SELECT name FROM kinds WHERE family = '{name}')"
    script = [added, f"CREATE VIEW {name}_cues AS SELECT id, text FROM cues WHERE kind {members};"]
    for index in kind.indices:
        tokenizer = SPELLING_TOKENIZER if index.endswith("_spellings") else TOKENIZER
        script.append(f"""
CREATE VIRTUAL TABLE {index} USING fts5 (text, content='{name}_cues', content_rowid='id', tokenize='{tokenizer}');
CREATE TRIGGER {index}_in AFTER INSERT ON cues WHEN new.kind {members} BEGIN
    INSERT INTO {index} (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER {index}_out AFTER DELETE ON cues WHEN old.kind {members} BEGIN
    INSERT INTO {index} ({index}, rowid, text) VALUES ('delete', old.id, old.text);
END;
""")
    if kind.spelt:
        script.append(f"CREATE VIRTUAL TABLE {name}_vocabulary USING fts5vocab ('{name}_spellings', 'row');")
    return "\n".join(script)


ADD_RECORDING = """
ALTER TABLE videos ADD COLUMN recorded REAL;
ALTER TABLE videos ADD COLUMN place TEXT;
DROP INDEX videos_mtime;
CREATE INDEX videos_date ON videos (coalesce(recorded, mtime_ns / 1e9));
"""
SUMMED = {
    "videos": "path, CAST(name AS BLOB), size, mtime_ns, CAST(hash AS BLOB), duration, width, height, "
    "CAST(rate AS BLOB), CAST(codec AS BLOB), clips, cues, shots, CAST(subtitles AS BLOB), added, "
    "CAST(notes AS BLOB), audio, CAST(sampling AS BLOB), recorded, CAST(place AS BLOB)",
    "cues": "CAST(kind AS BLOB), start, end, CAST(text AS BLOB), CAST(language AS BLOB), frame, score, "
    "CAST(box AS BLOB), CAST(words AS BLOB)",
    "settings": "CAST(key AS BLOB), CAST(value AS BLOB)",
    "kinds": "CAST(name AS BLOB), CAST(family AS BLOB), copied, spelt",
}
"""Tables whose rows have a checksum, and its columns; text is cast to bytes, because damaged text may be invalid."""
ADD_SUMS, ADD_MORE_SUMS = (
    "\n".join(
        f"ALTER TABLE {table} ADD COLUMN sum INTEGER; UPDATE {table} SET sum = row_sum({SUMMED[table]});"
        for table in tables
    )
    for tables in (("videos", "cues"), ("settings", "kinds"))
)
MIGRATIONS = ("\n".join([SCHEMA, *map(kind_script, KINDS)]), ADD_RECORDING, ADD_SUMS, ADD_MORE_SUMS)
"""Scripts that upgrade a catalog by one version each; ``PRAGMA user_version`` counts those that were run."""
CATALOG_FILE = "catalog.sqlite"
MIN_CLIP_SECONDS, MAX_CLIP_SECONDS = 0.1, 600.0
"""Range of the setting ``clip_seconds``."""
DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError, MemoryError)
"""What SQLite raises; the last two if its message quotes damaged bytes, or a damaged number needs too much memory."""
BUSY_SECONDS = 30.0
"""Seconds that a writer waits for another transaction; ours last milliseconds."""


DISK_FULL = "the disk is full; make room and run the command again"
NO_ROOM_CODES = {
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
}  # fmt: skip
"""Errors of a reader if the index that readers share cannot be created or extended."""


class Database:
    """An open SQLite database of a library; use one per thread."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.path = folder / CATALOG_FILE
        self.read_only = False
        """Whether the database cannot be written, and was opened read-only."""
        self._full = False
        self._opened: tuple[int, ...] = ()
        self._cached: dict[str, dict[str, Any]] = {}
        self._cached_state = (-1, -1)
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
            try:
                self._check_version()
            except BaseException:
                self._db.close()
                raise
        except DATABASE_ERRORS as e:
            raise unusable(self.path, e) from None

    def _connect(self, create: bool) -> sqlite3.Connection:
        if create and not self.path.exists():
            create_file(self.path)
        self._db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._db.create_function("row_sum", -1, _row_sum, deterministic=True)
        try:
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA fullfsync = ON")  # on macOS only this flushes the disk's own cache
            if create:
                self._create()
            self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as e:
            self._db.close()
            self._full = e.sqlite_errorcode in NO_ROOM_CODES
            rights = e.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
            if create or not (self._full or rights):
                raise
            self._db = self._connect_read_only()
            self._db.create_function("row_sum", -1, _row_sum, deterministic=True)
        except BaseException:
            self._db.close()
            raise
        return self._db

    def _connect_read_only(self) -> sqlite3.Connection:
        """Open the database without the index that readers of a WAL database share, because it cannot be created."""
        self.read_only, self._opened = True, self._file_state()
        log = self.path.with_name(f"{CATALOG_FILE}-wal")
        address = self.path.absolute().as_uri()
        if not file_size(log):
            address += "?mode=ro&immutable=1"
            return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
        if not self._full or os.name != "posix":
            raise LibraryError(
                f"{self.path}: cannot be written, and its last changes wait in {log.name}; copy the library elsewhere"
            )
        copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        alone = sqlite3.connect(f"{address}?vfs=unix-excl", uri=True, timeout=BUSY_SECONDS)  # its index is in memory
        with closing(alone):
            alone.backup(copy)
        copy.execute("PRAGMA query_only = ON")
        return copy

    def _file_state(self) -> tuple[int, ...]:
        """Times and sizes that change when somebody writes to the database after all."""
        log = self.path.with_name(f"{CATALOG_FILE}-wal")
        values: list[int] = []
        for path in (self.path, log):
            with suppress(OSError):  # the log is deleted when the last writer closes the database
                state = path.stat()
                values += state.st_mtime_ns, state.st_size
        return tuple(values)

    def _create(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'settings'").fetchone():
            self._migrate()

    def _version(self) -> int:
        return int(self.rows("PRAGMA user_version")[0][0])

    def _migrate(self) -> None:
        """Run the missing migrations, all of them or none."""
        with self.changes():
            found = self._version()
            for script in MIGRATIONS[found:]:
                self._run_script(script)
            self._db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _check_version(self) -> None:
        """Upgrade an older catalog; refuse one that is too old, or newer than this program."""
        found = self._version()
        if 0 < found < len(MIGRATIONS) and not self.read_only:
            self._migrate()
        elif found != len(MIGRATIONS) and not (self.read_only and found == len(MIGRATIONS) - 1):  # lacks checksums only
            try:
                self.get("clip_seconds")  # says so if there is no library at all
            finally:
                self._db.close()
            raise LibraryError(f"{self.path}: {_other_version(found, self.path.parent)}")

    def add_kind(self, kind: TrackKind) -> None:
        """Add a kind of track, unless the library has it already."""
        if not kind.text:
            return
        with self.changes():
            if not self.rows("SELECT 1 FROM kinds WHERE name = ?", (kind.name,)):
                script = kind_script(kind)
                if self.rows("SELECT 1 FROM sqlite_master WHERE name = ?", (f"{kind.name}_cues",)):
                    script = script.partition("\n")[0]  # only its row was lost, to damage
                self._run_script(script)
                self.run(f"UPDATE kinds SET sum = row_sum({SUMMED['kinds']}) WHERE name = ?", (kind.name,))

    def kinds(self) -> list[TrackKind]:
        """The kinds of tracks that the library may have."""
        rows = self.rows("SELECT name, family, copied, spelt FROM kinds ORDER BY name")
        return [
            TrackKind(name, "" if family == name else family, copied=bool(copied), spelt=bool(spelt))
            for name, family, copied, spelt in rows
        ]

    def _run_script(self, script: str) -> None:
        for statement in _statements(script):
            self._db.execute(statement)

    def close(self) -> None:
        """Close the database's file."""
        self._db.close()

    @contextmanager
    def changes(self) -> Iterator[sqlite3.Connection]:
        """Change the database in one transaction: all of the changes are made, or none."""
        if self._full:
            raise LibraryError(f"{self.path}: {DISK_FULL}")
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
        """Execute an SQL statement, usually inside ``changes()``; for the modules of this package only."""
        try:
            self._db.execute(sql, values)
        except DATABASE_ERRORS as e:
            raise unusable(self.path, e) from None

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a setting of the library."""
        rows = self.rows("SELECT value FROM settings WHERE key = ?", (key,))
        try:
            return json.loads(rows[0][0]) if rows else default
        except (TypeError, ValueError, RecursionError):
            raise damaged_row(self.path, "settings", key) from None

    def set(self, key: str, value: Any) -> None:
        """Store a setting of the library, inside ``changes()`` or on its own."""
        summed = "row_sum(CAST(?1 AS BLOB), CAST(?2 AS BLOB))"
        self.run(f"INSERT OR REPLACE INTO settings VALUES (?1, ?2, {summed})", (key, json.dumps(value)))

    def generation(self) -> int:
        """A number that changes whenever another connection has committed something; cheap to ask for."""
        if self.read_only and self._file_state() != self._opened:
            self._db.close()
            self.read_only = self._full = False
            self._db = self._connect(False)
        if self.read_only:
            return hash(self._opened)
        return int(self.rows("PRAGMA data_version")[0][0])

    def state(self) -> tuple[int, int]:
        """Two numbers that change whenever anybody, this connection included, has changed something."""
        return self.generation(), self._db.total_changes

    def read_cache(self, name: str) -> dict[str, Any]:
        """The cache with this name; all caches are emptied whenever anybody has changed something."""
        if (state := self.state()) != self._cached_state:
            self._cached, self._cached_state = {}, state
        return self._cached.setdefault(name, {})

    def list_instances(self, index: str) -> bool:
        """Make a temporary table of the places of each word in a full-text index; False if that is not allowed."""
        sql = f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{index}_instances USING fts5vocab (main, {index}, instance)"
        with suppress(sqlite3.OperationalError):
            self._db.execute(sql)
            return True
        return False


def create_file(path: Path) -> None:
    """Create an empty database, unless somebody else is quicker.

    It gets its name when it is complete: without content it would look like lost data to a reader.
    """
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".", ignore_cleanup_errors=True) as folder:
            made = Path(folder) / path.name
            with closing(sqlite3.connect(made)) as db:
                db.execute("PRAGMA journal_mode = WAL")
            try:
                os.link(made, path)
            except FileExistsError:
                pass
            except OSError:  # a file system without hard links
                made.rename(path)
        flush_folder(path.parent)
    except OSError as e:
        raise LibraryError(f"{path}: cannot be written ({e.strerror}); check the folder") from None


def file_size(path: Path) -> int:
    """Size of a file in bytes; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def unusable(path: Path, e: Exception) -> LibraryError:
    """Turn an error of the database into one that tells users what to do."""
    text = str(e) if isinstance(e, sqlite3.Error) else "malformed content"
    if "locked" in text or "busy" in text:
        return LibraryBusyError(f"{path}: another process has been writing for {BUSY_SECONDS:.0f} s; try again later")
    if "full" in text:
        return LibraryError(f"{path}: {DISK_FULL}")
    if "readonly" in text or "unable to open" in text:
        return LibraryError(f"{path}: cannot be opened or written ({text}); check the folder's rights")
    if "no such table: settings" in text:
        return LibraryError(
            f"{path}: holds no library yet, as a first add that was stopped leaves it; run: "
            f"momentseek add FOLDER{library_option(path.parent)}"
        )
    if "disk I/O error" in text:
        return LibraryError(
            f"{path}: the disk cannot read or write it ({text}); check the disk and the room on it, and run this again"
        )
    if "decode to UTF-8" in text:
        return LibraryError(f"{path}: holds damaged text; run: momentseek verify --repair, then momentseek retry")
    if "malformed" in text or "not a database" in text or "no such table" in text:
        remedy = "run: momentseek verify --repair; if the error stays, move the file away and add the videos again"
        if (path.parent / ORIGIN_FILE).is_file():
            remedy = f"delete the folder {path.parent}, which is fetched again from where it is kept"
        return LibraryError(f"{path}: is damaged ({text}); {remedy}")
    return LibraryError(f"{path}: the catalog cannot be used ({text}); run: momentseek verify")


def damaged_row(path: Path, table: str, name: object) -> LibraryError:
    """The error for a damaged row of the catalog."""
    return LibraryError(
        f"{path}: the row of {table} about {name} is damaged; run: momentseek verify --repair, then momentseek retry"
    )


def _row_sum(*values: object) -> int:
    """The checksum of a row's values."""
    return zlib.crc32(repr(values).encode())


def _other_version(found: int, folder: Path) -> str:
    """A message about a library of another version, with what to do.

    >>> _other_version(0, Path("/films"))
    'was made by an earlier version; move it away and add the videos again: momentseek add FOLDER --library /films'
    """
    whole = folder.parent
    if found < len(MIGRATIONS) and (whole / SHARDS_FILE).is_file():
        again = f"momentseek shard {shlex.quote(place_text(whole))} --shards N"
        return f"was made by an earlier version; move {place_text(whole)} away, and make and fill it again: {again}"
    if found < len(MIGRATIONS):
        again = f"momentseek add FOLDER{library_option(folder)}"
        return f"was made by an earlier version; move it away and add the videos again: {again}"
    return f"was made by a later version (format {found}); update momentseek"


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements; ``executescript`` would commit the open transaction."""
    statement = ""
    for piece in script.split(";"):
        statement += piece + ";"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    """Run the body of a ``with`` as a transaction: everything is committed, or nothing."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
