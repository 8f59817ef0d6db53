"""A library that cannot be used: 503 and a sentence, whoever asks."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from momentseek.library import database

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
