from __future__ import annotations

import io
import logging
import re

import pytest
from fastapi.testclient import TestClient

from momentseek.api.library import Library


def test_every_answer_has_them(client: TestClient) -> None:
    for path in ("/", "/api/v1/status", "/api/v1/videos/1/media", "/nothing", "/api/v1/search", "/api/v1/docs"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
        assert "cache-control" in headers
        assert "server" not in headers
    refused = client.get("/api/v1/status", headers={"Host": "evil.example"})
    assert "content-security-policy" in refused.headers


def test_json_is_not_kept(client: TestClient) -> None:
    for path in ("/api/v1/status", "/api/v1/search?q=x", "/api/v1/videos/99", "/api/v1/search"):
        answer = client.get(path)
        assert answer.headers["cache-control"] == "no-store"
        assert "etag" not in answer.headers


def test_a_fault_is_one_line_without_what_was_asked(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("my private query")

    monkeypatch.setattr(Library, "search", broken)
    logged = io.StringIO()
    handler = logging.StreamHandler(logged)
    logging.getLogger().addHandler(handler)
    try:
        answer = client.get("/api/v1/search", params={"q": "my private query"})
    finally:
        logging.getLogger().removeHandler(handler)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "fault")
    assert "Traceback" not in answer.text
    assert "private" not in answer.text + logged.getvalue()
    assert "KeyError" in logged.getvalue()


def test_websockets_are_refused(client: TestClient) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/v1/status"):
        pass


def test_the_manual_needs_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/api/v1/docs").text
    links = re.findall(r"""(?:src|href)=["']([^"']+)""", page)
    assert all(link.startswith(("/api/v1/", "/docs.css", "#")) for link in links)
    assert not re.search(r"<script|\sstyle=|\son\w+=", page)
    assert client.get("/docs.css").headers["content-type"].startswith("text/css")
    targets = set(re.findall(r'id="([^"]+)"', page))
    assert {link[1:] for link in links if link.startswith("#")} <= targets
    for path in client.get("/api/v1/openapi.json").json()["paths"]:
        assert path in page
