from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

STATUS = "/api/v1/status"
TOKEN = "a token of good length"


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8765", "127.0.0.1:1", "[::1]:8765", "films.local", "films.local:80"]
)
def test_our_names_are_answered(serve: Callable[..., TestClient], host: str) -> None:
    assert serve(allowed_hosts=("films.local",)).get(STATUS, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", [
    "evil.example", "localhost.evil.example", "evil.localhost", "127.0.0.1.evil.example", "192.168.1.9", "",
    "local host", "localhost:80:80", "user@localhost", "localhost/", "[::2]", "localhost,evil.example", "0.0.0.0",
    "localhost\u00e9",
])  # fmt: skip
def test_other_names_are_refused_everywhere(client: TestClient, host: str) -> None:
    for path in (STATUS, "/", "/api/v1/docs", "/api/v1/videos/1/media", "/nothing"):
        answer = client.get(path, headers={"Host": host.encode()})  # type: ignore[dict-item]
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong_host")


def test_two_hosts_are_refused(client: TestClient) -> None:
    headers = [("Host", "localhost"), ("Host", "evil.example")]
    assert client.get(STATUS, headers=headers).status_code == 403


def test_addresses_cannot_be_rebound_so_a_wildcard_takes_them(serve: Callable[..., TestClient]) -> None:
    client = serve(host="0.0.0.0", token=TOKEN)
    asked = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get(STATUS, headers={**asked, "Host": "192.168.1.9:8765"}).status_code == 200
    assert client.get(STATUS, headers={**asked, "Host": "evil.example"}).status_code == 403


@pytest.mark.parametrize("origin", [
    "null", "http://evil.example", "http://localhost:1", "http://localhost.evil.example", "https://", "localhost",
    "file://localhost", "http://localhost@evil.example", "http://localhost http://evil.example", "",
])  # fmt: skip
def test_other_origins_are_refused(client: TestClient, origin: str) -> None:
    for call in (
        lambda: client.get(STATUS, headers={"Origin": origin}),
        lambda: client.post("/api/v1/search", json={"q": "x"}, headers={"Origin": origin}),
        lambda: client.post("/api/v1/jobs/retry", headers={"Origin": origin}),
    ):
        answer = call()
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong_origin")


def test_our_own_origin_is_answered(client: TestClient) -> None:
    assert client.get(STATUS, headers={"Origin": "http://localhost"}).status_code == 200
    headers = {"Host": "127.0.0.1:8765", "Origin": "http://127.0.0.1:8765"}
    assert client.get(STATUS, headers=headers).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_says_another_site_asked_is_refused(client: TestClient, site: str) -> None:
    asked = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    assert client.get("/api/v1/videos/1/thumbnail", headers=asked).status_code == 403
    followed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/api/v1/docs", headers=followed).status_code == 200
    assert client.post("/api/v1/search", json={"q": "x"}, headers=followed).status_code == 403


def test_no_other_site_is_ever_invited(client: TestClient) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = client.options("/api/v1/search", headers=asked)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
