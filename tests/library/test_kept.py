"""Libraries that releases have left (``kept/``, made by ``freeze.py``) are opened, searched, changed and verified."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from momentseek.library.database import MIGRATIONS, _row_sum, _statements

ARCHIVES = sorted(Path(__file__).parent.glob("kept/*.zip"))
LATER = Path(__file__).with_name("later.py")
"""What a later version does with a kept library, in a process of its own: stand-ins would stay in this one."""


class Kept(NamedTuple):
    """A library of an earlier release, unpacked, and what that release said of it."""

    folder: Path
    expected: dict[str, Any]

    def version(self, catalog: str = "library/catalog.sqlite") -> int:
        with closing(sqlite3.connect(self.folder / catalog)) as db:
            return int(db.execute("PRAGMA user_version").fetchone()[0])


@pytest.fixture(params=ARCHIVES, ids=[path.stem for path in ARCHIVES])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    return Kept(tmp_path, json.loads((tmp_path / "expected.json").read_text()))


def later(kept: Kept, what: str) -> dict[str, Any]:
    """What this version says after it has done something with the kept library."""
    bench = str(LATER.parent.parent.parent / "bench")
    paths = os.pathsep.join(filter(None, [bench, os.environ.get("PYTHONPATH")]))
    words = [sys.executable, str(LATER), str(kept.folder), what]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_first_release_left_one() -> None:
    assert "0.1.0" in [path.stem for path in ARCHIVES]


def test_what_made_a_released_format_is_not_changed(kept: Kept) -> None:
    """A change to an old script would leave libraries of that release without it: write a new migration instead."""
    version = kept.version()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.create_function("row_sum", -1, _row_sum)
        for script in MIGRATIONS[:version]:
            for statement in _statements(script):
                db.execute(statement)
        tables = db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    with closing(sqlite3.connect(kept.folder / "library" / "catalog.sqlite")) as db:
        assert db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall() == tables


@pytest.mark.slow
def test_it_says_and_finds_what_it_did(kept: Kept) -> None:
    found = later(kept, "read")
    assert found["said"] == kept.expected["said"]
    for place in ("answers", "in shards"):
        for stream, (name, start, end) in kept.expected[place].items():
            hit, first, last = found[place][stream]
            assert hit == name, (place, stream)
            assert min(end, last) - max(start, first) > 0.5 * (end - start), (place, stream)
    assert found["problems"] == []
    assert kept.version() == kept.version("shards/shard-000/catalog.sqlite") == len(MIGRATIONS)


@pytest.mark.slow
def test_it_is_changed_and_still_whole(kept: Kept) -> None:
    """Films are found again where they lie now, one is added, heard, corrected, judged; all is rewritten."""
    found, before = later(kept, "change"), kept.expected["said"]
    videos = before["videos"]
    assert {name: found["said"]["videos"][name] for name in videos} == videos, "a film that has moved keeps everything"
    assert sorted(found["said"]["videos"]) == sorted([*videos, "new.mp4"])
    assert found["said"]["judged"] == [*before["judged"], ["carl", 3, False]]
    assert found["added"] == {"library": 1, "shards": 1}
    assert found["problems"] == []
    assert found["answers"]["vision"][0] == found["in shards"]["vision"][0]
