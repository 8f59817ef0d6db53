from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.server.errors import ApiError
from momentseek.server.security.middleware import BodyMiddleware
from momentseek.server.settings import Limits

SEARCH = "/api/v1/search"


def test_a_body_that_is_too_large_is_refused(client: TestClient) -> None:
    answer = client.post(SEARCH, json={"q": "x" * 70_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_also_when_it_does_not_say_how_large_it_is(client: TestClient) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b" " * 4096

    answer = client.post(SEARCH, content=pieces(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize("length", ["-1", "1e3", "٣", "9" * 30, " "])
def test_lengths_that_are_none_are_refused(client: TestClient, length: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": length.encode()}
    assert client.post(SEARCH, content=b"", headers=headers).status_code in (400, 413)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "",
    "application/jsonp", "text/plain; application/json",
])  # fmt: skip
def test_what_a_form_can_send_changes_nothing(client: TestClient, kind: str) -> None:
    for path in (SEARCH, "/api/v1/jobs", "/api/v1/jobs/retry", "/api/v1/jobs/x/cancel", "/login"):
        answer = client.post(path, content=b'{"q": "x"}', headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_type")


def test_without_a_body_only_our_own_page_may_go_without_a_type(client: TestClient) -> None:
    path = "/api/v1/jobs/unknown/cancel"
    assert client.post(path).status_code == 415
    assert client.post(path, headers={"Origin": "http://localhost"}).status_code == 404
    assert client.post(path, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 404
    assert client.post(path, headers={"Content-Type": "application/json; charset=utf-8"}).status_code == 404


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff", b'{"q": NaN}', b"[" * 30_000, b'{"q": "\\ud800"}']
)
def test_broken_json_is_said_to_be(client: TestClient, body: bytes) -> None:
    answer = client.post(SEARCH, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422) or (answer.status_code == 200 and b"ud800" in body)
    assert "error" in answer.json() or answer.status_code == 200


def test_a_slow_body_is_given_up() -> None:
    async def forever() -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def never(*_: Any) -> None:
        raise AssertionError("the application must not be reached")

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
    guard = BodyMiddleware(never, Limits(body_seconds=0.2))
    with pytest.raises(ApiError) as refused:
        asyncio.run(guard(scope, forever, never))
    assert (refused.value.status, refused.value.code) == (408, "too_slow")


def test_a_client_that_hangs_up_reaches_nothing() -> None:
    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def never(*_: Any) -> None:
        raise AssertionError("the application must not be reached")

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
    asyncio.run(BodyMiddleware(never, Limits())(scope, gone, never))


def test_the_application_gets_the_whole_body_and_then_the_connection(serve: Callable[..., TestClient]) -> None:
    answer = serve().post(
        SEARCH, content=iter([b'{"q":', b' "green"', b"}"]), headers={"Content-Type": "application/json"}
    )
    assert answer.json()["query"] == "green"


@pytest.mark.parametrize("asked", [{"q": "x", "k": True}, {"q": "x", "k": "3"}, {"q": 5}, {"q": "x", "all": 1}])
def test_json_has_types(client: TestClient, asked: dict[str, object]) -> None:
    assert client.post(SEARCH, json=asked).status_code == 422
