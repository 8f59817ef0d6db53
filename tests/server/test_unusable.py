"""A library that cannot be used: 503 and a sentence, whoever asks."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from momentseek.library import database, segments

PATHS = ("/api/v1/status", "/api/v1/videos", "/api/v1/videos/1", "/api/v1/search?q=red", "/api/v1/folders")


def test_a_damaged_catalogue(serve: Callable[..., TestClient], place: Path) -> None:
    client = serve(place)
    (place / database.CATALOG_FILE).write_bytes(b"no database, but long enough to be looked at " * 50)
    for path in PATHS:
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "library_unusable"), path
        message = answer.json()["error"]["message"]
        assert message.startswith("catalog.sqlite: is damaged")
        assert str(place) not in message


def test_a_locked_catalogue(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(self: database.Database, *_: object) -> list[object]:
        raise database.unusable(self.path, sqlite3.OperationalError("database is locked"))

    with monkeypatch.context() as patched:
        patched.setattr(database.Database, "rows", locked)
        for path in PATHS[:2]:
            answer = client.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
            assert "another process has been writing" in answer.json()["error"]["message"]
            assert answer.headers["retry-after"] == "2"
    assert client.get(PATHS[0]).status_code == 200


@pytest.mark.parametrize("mapped", [False, True])
def test_a_segment_cut_short_under_a_running_server(
    serve: Callable[..., TestClient], place: Path, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mapped:
        monkeypatch.setattr(segments, "MAX_READ_BYTES", 0)
    client = serve(place)
    before = client.get(PATHS[3]).json()["hits"]
    assert before
    for path in (place / "segments").glob("*.vec"):
        os.truncate(path, 100)
    answer = client.get(PATHS[3])
    if mapped:
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "library_unusable")
        assert "run: momentseek verify" in answer.json()["error"]["message"]  # by a worker that had it open, or had not
        assert client.get(f"{PATHS[2]}/curve?q=red").status_code == 503
    elif answer.status_code == 200:  # by a worker that had read it
        assert answer.json()["hits"] == before
    else:
        assert answer.status_code == 503
    assert client.get(PATHS[0]).status_code == 200
