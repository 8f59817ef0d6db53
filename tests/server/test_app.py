from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


def test_the_state_is_answered_before_other_routes_are_loaded(
    shared: Path, light: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("momentseek.server.app.WARM_UP_SECONDS", 60)
    app = create_app(shared / "library")
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/api/v1/status").status_code == 200
        assert client.get("/").status_code == 200
        assert app.state.others in app.router.routes
        assert client.post("/api/v1/status", json={}).status_code == 405
        assert app.state.others not in app.router.routes
        assert client.get("/api/v1/videos").status_code == 200
        assert client.get("/nowhere").status_code == 404


def test_first_requests_that_come_together_wait_for_one_loading(
    shared: Path, light: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("momentseek.server.app.WARM_UP_SECONDS", 60)
    app = create_app(shared / "library")
    with TestClient(app, base_url="http://localhost") as client, ThreadPoolExecutor(4) as pool:
        addresses = ["/api/v1/videos", "/api/v1/openapi.json", "/api/v1/search?q=red", "/nowhere"]
        codes = [answer.status_code for answer in pool.map(client.get, addresses)]
        assert codes == [200, 200, 200, 404]
        paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert len(paths) > 20
    assert next(iter(paths)) == "/api/v1/status"


def test_all_routes_are_loaded_soon_even_if_nobody_asks(serve: Callable[..., TestClient]) -> None:
    app = serve().app
    deadline = time.monotonic() + 20
    while app.state.others in app.router.routes:
        assert time.monotonic() < deadline
        time.sleep(0.01)
