from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.server.app import create_app


def test_a_fault_while_warming_up_does_not_end_the_server(
    serve: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def broken(*_: object, **__: object) -> None:
        tried.append(True)
        raise KeyError

    monkeypatch.setattr(Library, "search", broken)
    client = serve()
    for _ in range(200):
        if tried:
            break
        time.sleep(0.01)
    assert tried
    assert client.get("/api/v1/status").status_code == 200


def test_a_library_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(MomentseekError, match="has no library"):
        create_app(tmp_path)


def test_the_manual_shows_code_as_code(client: TestClient) -> None:
    manual = client.get("/api/v1/docs").text
    assert "<code>video</code> gives one hit per video" in manual
    assert "`" not in manual


def test_two_applications_of_a_process_serve_each_its_own_library(
    serve: Callable[..., TestClient], other: Path
) -> None:
    first, second = serve(), serve(other)
    counts = [client.get("/api/v1/status").json()["library"]["videos"] for client in (first, second, first)]
    assert counts == [2, 3, 2]
    assert first.get("/api/v1/openapi.json").json() == second.get("/api/v1/openapi.json").json()
