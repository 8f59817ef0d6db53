"""Values in the catalog that are not what was written: named, never a traceback, and repaired."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from momentseek.core.errors import MomentseekError
from momentseek.library.store import LibraryStore

DAMAGES = [
    "UPDATE segments SET videos = 'x'",
    "UPDATE segments SET rows = NULL_TEXT",
    "UPDATE segments SET first = 'y', stream = x'00'",
    "UPDATE videos SET clips = 'abc' WHERE name = 'a.mp4'",
    "UPDATE videos SET clips = clips + 1 WHERE name = 'a.mp4'",
    "UPDATE videos SET path = 7 WHERE name = 'a.mp4'",
    "UPDATE videos SET duration = 'abc' WHERE name = 'a.mp4'",
    "UPDATE videos SET duration = duration + 0.5 WHERE name = 'a.mp4'",
    "UPDATE videos SET rate = '0/0' WHERE name = 'a.mp4'",
    "UPDATE videos SET shots = x'0102' WHERE name = 'a.mp4'",
    "UPDATE videos SET notes = '[' WHERE name = 'a.mp4'",
    "UPDATE videos SET name = CAST(x'ff' AS TEXT) WHERE name = 'a.mp4'",
    "UPDATE cues SET text = x'ff'",
    "UPDATE cues SET text = CAST(x'ff' AS TEXT)",
    "UPDATE cues SET text = 'It is blve.'",
    "UPDATE cues SET start = 'soon'",
    "UPDATE cues SET kind = x'00'",
    "UPDATE encoders SET dim = 'four' WHERE stream = 'vision'",
    "UPDATE settings SET value = x'01' WHERE key = 'encoder'",
    "UPDATE settings SET value = '\"colourz\"' WHERE key = 'encoder'",
    "INSERT INTO settings VALUES ('reencoding', '{', NULL)",
    "UPDATE kinds SET family = 'ocr' WHERE name = 'speech'",
    "UPDATE kinds SET name = 'speecx' WHERE name = 'speech'",
    "UPDATE kinds SET family = 'x' WHERE name = 'ocr'",
    "UPDATE kinds SET name = CAST(x'ff' AS TEXT) WHERE name = 'sounds'",
    "UPDATE kinds SET spelt = 1 - spelt, copied = 'no' WHERE name = 'captions'",
    "INSERT INTO failures VALUES ('text', 'n', 'r', 'at', 'x', 'y', 'z')",
    "INSERT INTO tracks VALUES (1, 'ocr', 1, 'm', 'f', NULL, 'far', '', 0.0)",
]


def damage(folder: Path, sql: str) -> None:
    with closing(sqlite3.connect(folder / "catalog.sqlite", isolation_level=None)) as db:
        db.execute(sql.replace("NULL_TEXT", "'none'"))


@pytest.mark.parametrize("sql", DAMAGES)
def test_a_damaged_value_is_named_and_repaired(
    sql: str, library: LibraryStore, films: Path, content: Callable[[LibraryStore], dict[str, Any]]
) -> None:
    library.add(films)
    want = content(library)
    library.close()
    damage(library.path, sql)
    with LibraryStore.open(library.path, create=False) as opened:
        report = opened.verify()
        assert not report.clean
        table = sql.removeprefix("UPDATE ").removeprefix("INSERT INTO ").split()[0]
        assert any(f" of {table} " in problem for problem in report.problems), report.problems
        report = opened.verify(repair=True)
        assert report.clean, report.problems
        assert any(f" of {table} " in line for line in report.repaired)
        opened.retry()
        opened.add(films)
        assert content(opened) == want
        assert opened.verify().clean


@pytest.mark.parametrize("sql", DAMAGES)
def test_a_damaged_value_never_ends_in_another_error(sql: str, library: LibraryStore, films: Path) -> None:
    library.add(films)
    library.close()
    damage(library.path, sql)

    def each(do: Callable[[LibraryStore], object]) -> None:
        said = "run: momentseek verify"
        try:
            with LibraryStore.open(library.path, create=False) as opened:
                do(opened)
        except MomentseekError as e:
            said = str(e)
        assert "run: momentseek verify" in said

    each(LibraryStore.snapshot)
    each(LibraryStore.videos)
    each(LibraryStore.status)
    each(LibraryStore.failures)
    each(lambda opened: [opened.catalog.cues(id) for id in (1, 2, 3)])
    each(lambda opened: opened.add(films))
    each(LibraryStore.compact)
    each(lambda opened: opened.remove("b.mp4"))


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE encoders SET dim = -1 WHERE stream = 'vision'",
        "UPDATE encoders SET dim = dim + 1 WHERE stream = 'vision'",
        "UPDATE encoders SET dim = 0 WHERE stream = 'speech'",
        "UPDATE segments SET videos = videos + 1",
        "UPDATE segments SET rows = rows - 1",
        "UPDATE segments SET stream = 'speech' WHERE stream = 'vision'",
        "UPDATE segments SET stream = 'visiom' WHERE stream = 'vision'",
    ],
)
def test_intact_vectors_are_kept_if_the_catalog_is_wrong(
    sql: str, library: LibraryStore, films: Path, content: Callable[[LibraryStore], dict[str, Any]]
) -> None:
    library.add(films)
    want = content(library)
    library.close()
    damage(library.path, sql)
    with LibraryStore.open(library.path, create=False) as opened:
        assert not opened.verify().clean
        report = opened.verify(repair=True)
        assert report.clean, report.problems
        assert content(opened) == want, "nothing was lost, so nothing is made again"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE settings SET value = 'x' WHERE key = 'clip_seconds'",
        "UPDATE settings SET value = '-1.5' WHERE key = 'clip_seconds'",
        "UPDATE settings SET value = '\"1.5\"' WHERE key = 'clip_seconds'",
        "DELETE FROM settings WHERE key = 'clip_seconds'",
    ],
)
def test_the_setting_that_nothing_else_tells_is_not_guessed(sql: str, library: LibraryStore, films: Path) -> None:
    library.add(films)
    damage(library.path, sql)
    with pytest.raises(MomentseekError, match="the row of settings about clip_seconds is damaged"):
        library.add(films)
    report = library.verify(repair=True)
    assert not report.clean
    assert "clip_seconds" in report.problems[0]


def test_a_change_of_a_damaged_row_does_not_make_it_sound(library: LibraryStore, films: Path) -> None:
    library.add(films)
    damage(library.path, "UPDATE videos SET height = 47 WHERE name = 'a.mp4'")
    with library.catalog.changes():
        library.catalog.update_video(1, name="moved.mp4")
    assert not library.verify().clean


def test_bytes_changed_in_the_file_are_never_taken_for_sound(
    library: LibraryStore, films: Path, content: Callable[[LibraryStore], dict[str, Any]]
) -> None:
    """Any letter of a video's or cue's row: flipped in the file itself, under SQLite."""
    library.add(films)
    want = content(library)
    library.catalog.tidy()
    library.close()
    path = library.path / "catalog.sqlite"
    sound = path.read_bytes()
    places = [at for word in (b"a.mp4", b"h264", b"It is blue", b"exact") for at in find_all(sound, word)]
    chance = random.Random(1)
    for at in places:
        where = at + chance.randrange(4)
        path.write_bytes(sound[:where] + bytes([sound[where] ^ (1 << chance.randrange(8))]) + sound[where + 1 :])
        try:
            with LibraryStore.open(library.path, create=False) as opened:
                assert not opened.verify().clean or content(opened) == want
        except MomentseekError:
            pass
    assert len(places) > 5


def find_all(data: bytes, word: bytes) -> list[int]:
    out, at = [], data.find(word)
    while at >= 0:
        out.append(at)
        at = data.find(word, at + 1)
    return out
