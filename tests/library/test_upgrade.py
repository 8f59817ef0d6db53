"""A library of every released format is brought up to date with nothing lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from momentseek.library.database import MIGRATIONS, Database, _row_sum, _statements
from momentseek.library.store import LibraryStore

TABLES = (
    "settings",
    "encoders",
    "videos",
    "segments",
    "gone",
    "failures",
    "tracks",
    "track_parts",
    "cue_edits",
    "cues",
)


def downgrade(folder: Path, version: int) -> None:
    """Write a library's catalog as a release of that format would have written it."""
    path, old = folder / "catalog.sqlite", folder / "old.sqlite"
    with closing(sqlite3.connect(old, isolation_level=None)) as db:
        db.create_function("row_sum", -1, _row_sum)
        db.execute("PRAGMA journal_mode = WAL")
        for script in MIGRATIONS[:version]:
            for statement in _statements(script):
                db.execute(statement)
        db.execute("ATTACH ? AS new", (str(path),))
        for table in TABLES:
            columns = ", ".join(row[1] for row in db.execute(f"PRAGMA table_info({table})"))
            db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}")
        db.execute("INSERT INTO name_words (rowid, text) SELECT rowid, text FROM new.name_words")
        db.execute(f"PRAGMA user_version = {version}")
    old.rename(path)


def test_a_library_that_only_lacks_the_last_checksums_opens_where_nothing_can_be_written(
    library: LibraryStore, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.add(films)
    library.close()
    downgrade(library.path, len(MIGRATIONS) - 1)
    connect = Database._connect

    def connect_read_only(self: Database, create: bool) -> sqlite3.Connection:
        connect(self, create).close()
        self._db = self._connect_read_only()
        self._db.create_function("row_sum", -1, _row_sum)
        return self._db

    monkeypatch.setattr(Database, "_connect", connect_read_only)
    with LibraryStore.open(library.path, create=False) as opened:
        assert len(opened.videos()) == 3
        assert opened.verify().clean


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
def test_a_library_of_an_earlier_format_loses_nothing(
    version: int, library: LibraryStore, films: Path, content: Callable[[LibraryStore], dict[str, Any]]
) -> None:
    (films / "nothing.mp4").write_bytes(b"none")
    library.add(films)
    library.remove("a.mp4")
    want, failures = content(library), library.failures()
    library.close()
    downgrade(library.path, version)
    with LibraryStore.open(library.path) as opened:
        assert Database(opened.path).rows("PRAGMA user_version") == [(len(MIGRATIONS),)]
        assert content(opened) == want
        assert opened.failures() == failures
        assert opened.verify().clean
        assert opened.add(films).added == 1
        assert opened.verify().clean
