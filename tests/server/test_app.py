from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.server import app as app_module
from momentseek.server.app import create_app
from momentseek.server.settings import ServerSettings


def test_a_fault_while_warming_up_does_not_end_the_server(
    serve: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def broken(*_: object, **__: object) -> None:
        tried.append(True)
        raise KeyError

    monkeypatch.setattr(Library, "search", broken)
    client = serve()
    for _ in range(6000):
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


def test_a_server_scrubs_its_library_each_night(
    serve: Callable[..., TestClient], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = next((place / "segments").glob("*.vec"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"!")
    told, waits = threading.Event(), []
    monkeypatch.setattr(app_module.log, "error", lambda text, *rest: segment.name in rest[0] and told.set())

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) > 1:
            threading.Event().wait()

    monkeypatch.setattr(app_module, "time", SimpleNamespace(sleep=wait, localtime=time.localtime))
    serve(place, scrub_at="03:30")
    assert told.wait(20)
    assert 0 < waits[0] <= 24 * 3600
    with pytest.raises(MomentseekError, match="not a time of day"):
        ServerSettings(scrub_at="half past three")
