"""The catalog's file: where it cannot be written, is empty, or is another's."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.library import database as module
from momentseek.library.database import MIGRATIONS, Database
from momentseek.library.store import LibraryStore

NOBODY = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that others than root can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """As on a medium that cannot be written; root, whom no rights stop, becomes nobody meanwhile."""
    for path in folder.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="rights of another kind")
def test_a_library_that_cannot_be_written_is_read(light: ModuleType, films: Path, place: Path) -> None:
    with LibraryStore.open(place / "library", encoder="colours") as library:
        library.add(films)
    assert not list((place / "library").glob("*-wal"))
    with read_only(place / "library"), LibraryStore.open(place / "library", create=False) as library:
        assert library.catalog.read_only
        assert len(library.videos()) == 3
        assert library.status().clips == 12
        assert library.snapshot().vision[0].rows == 12
        assert library.verify().clean
        with pytest.raises(MomentseekError, match="cannot be opened for writing"):
            library.remove("a.mp4")
        with pytest.raises(MomentseekError, match="readonly"), library.catalog.changes():
            library.catalog.set("key", 1)
    with LibraryStore.open(place / "library") as library:
        assert not library.catalog.read_only


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="rights of another kind")
def test_changes_that_wait_are_not_passed_over(place: Path) -> None:
    source, copy = place / "source", place / "copy"
    source.mkdir()
    database = Database(source, create=True)
    with database.changes():
        database.set("key", 1)
    copy.mkdir()
    for name in ("catalog.sqlite", "catalog.sqlite-wal"):
        shutil.copy(source / name, copy / name)
    database.close()
    with read_only(copy), pytest.raises(MomentseekError, match="copy the library elsewhere"):
        Database(copy)


def test_an_empty_file_is_said_and_made_anew(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").touch()
    with pytest.raises(MomentseekError, match=r"is empty.*momentseek add FOLDER"):
        Database(tmp_path)
    Database(tmp_path, create=True).close()
    database = Database(tmp_path)
    assert database.rows("PRAGMA user_version") == [(len(MIGRATIONS),)]
    database.close()


def test_a_database_without_a_library_is_said(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "catalog.sqlite")
    other.execute("CREATE TABLE letters (text)")
    other.close()
    with pytest.raises(MomentseekError, match=r"holds no library yet.*momentseek add"):
        Database(tmp_path)


@pytest.mark.parametrize(
    ("version", "what"),
    [
        (0, "earlier version; move it away and add the videos again: momentseek add FOLDER --library"),
        (99, "later version.*update"),
    ],
)
def test_a_library_of_another_version_is_refused(tmp_path: Path, version: int, what: str) -> None:
    Database(tmp_path, create=True).close()
    with closing(sqlite3.connect(tmp_path / "catalog.sqlite")) as other, other:
        other.execute(f"PRAGMA user_version = {version}")
    other.close()
    with pytest.raises(MomentseekError, match=what):
        Database(tmp_path)


def test_migrations_that_a_library_lacks_are_run_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path, create=True)
    with database.changes():
        database.set("key", 1)
    database.close()
    more = (
        "CREATE TABLE shelves (name TEXT);",
        "INSERT INTO shelves VALUES ('left'); INSERT INTO shelves VALUES ('right');",
    )
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, *more))
    for _ in range(2):
        database = Database(tmp_path)
        assert database.rows("SELECT name FROM shelves") == [("left",), ("right",)]
        assert (database.get("key"), database.rows("PRAGMA user_version")) == (1, [(len(MIGRATIONS) + 2,)])
        database.close()
    broken = "CREATE TABLE boxes (name TEXT);", "INSERT INTO nowhere VALUES (1);"
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, *more, *broken))
    with pytest.raises(MomentseekError):
        Database(tmp_path)
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, *more))
    database = Database(tmp_path)
    assert database.rows("SELECT 1 FROM sqlite_master WHERE name = 'boxes'") == []
    database.close()


def test_a_message_that_quotes_damaged_bytes_is_a_sentence_too(tmp_path: Path) -> None:
    Database(tmp_path, create=True).close()
    file = tmp_path / "catalog.sqlite"
    content = file.read_bytes()
    assert b"tablecuescues" in content
    content = content.replace(b"tablecuescues", b"tablec\xfc\xffsc\xfc\xffs")
    file.write_bytes(content.replace(b"CREATE TABLE cues", b"CREXTE TABLE cues"))
    with pytest.raises(MomentseekError, match=r"catalog\.sqlite: is damaged"):
        Database(tmp_path)
