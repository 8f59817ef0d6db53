from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from momentseek.core.errors import MomentseekError
from momentseek.server.security import sessions as throttle
from momentseek.server.security.sessions import COOKIE_SECONDS, MAX_SESSIONS, Sessions
from momentseek.server.settings import ServerSettings

STATUS = "/api/v1/status"
TOKEN = "s3cret-token-of-the-owner"


def _enter(client: TestClient) -> str:
    """The cookie of a new session."""
    answer = client.post("/login", json={"token": TOKEN})
    assert answer.status_code == 200
    return answer.cookies["momentseek-8765"]


@pytest.fixture
def guarded(serve: Callable[..., TestClient]) -> TestClient:
    return serve(token=TOKEN)


def test_the_right_token_is_let_in(guarded: TestClient) -> None:
    for text in (f"Bearer {TOKEN}", f"bearer  {TOKEN}"):
        assert guarded.get(STATUS, headers={"Authorization": text}).status_code == 200


WRONG = [
    None, "", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer é",
    f"Bearer {TOKEN.upper()}", f"Bearer {TOKEN},{TOKEN}",
]  # fmt: skip


def test_others_are_not(guarded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_WRONG_PER_CLIENT", 10_000)
    monkeypatch.setattr(throttle, "MAX_WRONG_IN_TOTAL", 10_000)
    paths = guarded.get("/api/v1/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}).json()["paths"]
    private = [path for path in paths if path not in ("/login", "/logout")]
    paths = [*private, "/api/v1/docs", "/api/v1/openapi.json", "/api/v1/nothing", "/api/v1", "/api"]
    for number, given in enumerate(WRONG):
        headers = {} if given is None else {"Authorization": given.encode()}
        for path in paths if given is None else paths[number % 4 :: 4]:  # each path gets some, and each of them some
            answer = guarded.get(path.replace("{id}", "1"), headers=headers)  # type: ignore[arg-type]
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_needed"), path
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert TOKEN not in answer.text


@pytest.mark.parametrize(
    "path", ["//api/v1/status", "/API/v1/status", "/api/v1/../v1/status", "/%61pi/v1/status", "/x/../api/v1/status"]
)
def test_no_spelling_of_the_address_leads_around_it(guarded: TestClient, path: str) -> None:
    assert guarded.get(path).status_code in (401, 404)


@pytest.mark.parametrize("query", [
    f"token={TOKEN}", "token=", "TOKEN=x", "access_token=x", f"q={TOKEN}", f"q=a{TOKEN}b", "api_key=1",
    "q=" + "".join(f"%{ord(c):02x}" for c in TOKEN),
])  # fmt: skip
def test_a_token_in_the_address_is_refused_even_if_it_is_right(guarded: TestClient, query: str) -> None:
    for path in (STATUS, "/api/v1/search"):
        answer = guarded.get(f"{path}?{query}", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "token_in_address")
        assert TOKEN not in answer.text


@pytest.mark.parametrize("path", [STATUS, "/api/v1/search", "/", "/login", "/api/v1/{guess}", "/{guess}"])
def test_an_address_tells_nothing_of_the_token_to_those_who_lack_it(guarded: TestClient, path: str) -> None:
    """Thousands of guesses fit into an address; whether the right one is among them must not show."""
    guesses = [f"guess-number-{n:07}" for n in range(2000)]
    for headers in ({}, {"Authorization": "Basic x"}):
        wrong, right = (
            guarded.get(f"{path.replace('{guess}', one)}?q={','.join([*guesses, one])}", headers=headers)
            for one in ("not-the-token-at-all-nonono", TOKEN)
        )
        assert (wrong.status_code, wrong.headers, wrong.content) == (right.status_code, right.headers, right.content)


def test_guesses_in_headers_are_slowed_down_and_tell_nothing(guarded: TestClient) -> None:
    def answer(token: str) -> tuple[int, str]:
        given = guarded.get(STATUS, headers={"Authorization": f"Bearer {token}"})
        return given.status_code, given.json()["error"]["code"] if given.status_code != 200 else ""

    cookie = _enter(guarded)
    guarded.cookies.clear()
    answers = [answer(f"guess-number-{n}") for n in range(throttle.MAX_WRONG_PER_CLIENT)]
    assert answers == [(401, "token_needed")] * throttle.MAX_WRONG_PER_CLIENT
    assert [answer(token) for token in ("wrong", TOKEN, TOKEN[:-1])] == [(429, "too_many_tries")] * 3
    assert guarded.post("/login", json={"token": TOKEN}).status_code == 429
    assert guarded.get(STATUS, headers={"Cookie": f"momentseek-8765={cookie}"}).status_code == 200


def test_the_page_gets_a_cookie_for_the_token(guarded: TestClient) -> None:
    answer = guarded.post("/login", json={"token": TOKEN})
    assert (answer.status_code, answer.json()) == (200, {"needed": True})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert guarded.get(STATUS).status_code == 200
    assert guarded.post("/logout", json={}).status_code == 200
    assert guarded.get(STATUS).status_code == 401


@pytest.mark.parametrize(
    "others", ['theme={"dark": true}', "a b=c", "lone", "x=é", 'q="open', "", "momentseek-8765=old"]
)
def test_cookies_of_others_do_not_hide_ours(guarded: TestClient, others: str) -> None:
    ours = f"momentseek-8765={_enter(guarded)}"
    guarded.cookies.clear()
    for given in (f"{others}; {ours}", f"{ours}; {others}", f"{others};{ours};{others}"):
        assert guarded.get(STATUS, headers={"Cookie": given.encode()}).status_code == 200  # type: ignore[dict-item]
    assert guarded.get(STATUS, headers={"Cookie": others.encode()}).status_code == 401  # type: ignore[dict-item]


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1]])
def test_a_wrong_token_gets_none(guarded: TestClient, token: str) -> None:
    answer = guarded.post("/login", json={"token": token})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_wrong_header_is_not_saved_by_a_right_cookie(guarded: TestClient) -> None:
    guarded.post("/login", json={"token": TOKEN})
    assert guarded.get(STATUS, headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_leaving_ends_the_session_for_every_copy_of_its_cookie(guarded: TestClient) -> None:
    first, second = _enter(guarded), _enter(guarded)
    guarded.cookies.clear()

    def status(cookie: str) -> int:
        return guarded.get(STATUS, headers={"Cookie": f"momentseek-8765={cookie}"}).status_code

    assert (status(first), status(second)) == (200, 200)
    left = guarded.post("/logout", json={}, headers={"Cookie": f"momentseek-8765={first}"})
    assert left.status_code == 200
    assert 'momentseek-8765=""' in left.headers["set-cookie"]
    assert (status(first), status(second)) == (401, 200)


def test_a_session_ends_after_a_week_and_is_of_one_server() -> None:
    sessions, others = Sessions(ServerSettings(token=TOKEN)), Sessions(ServerSettings(token=TOKEN))
    cookie = sessions.open(now=1000.0)
    assert sessions.is_open(cookie, 999.0 + COOKIE_SECONDS)
    assert not sessions.is_open(cookie, 1000.0 + COOKIE_SECONDS)
    assert not others.is_open(cookie, 1001.0)
    for bad in ("", cookie[:-1], f"{cookie}x", cookie.swapcase(), "é"):
        assert not sessions.is_open(bad, 1001.0)


def test_sessions_are_bounded_and_the_oldest_goes() -> None:
    sessions = Sessions(ServerSettings(token=TOKEN))
    cookies = [sessions.open(now=float(i)) for i in range(MAX_SESSIONS + 1)]
    assert [sessions.is_open(one, 2000.0) for one in cookies[:2]] == [False, True]
    assert sessions.is_open(cookies[-1], 2000.0)


def test_who_is_wrong_too_often_must_wait_also_with_the_right_token(guarded: TestClient) -> None:
    for _ in range(throttle.MAX_WRONG_PER_CLIENT):
        assert guarded.post("/login", json={"token": "wrong"}).status_code == 401
    for token in ("wrong", TOKEN):
        answer = guarded.post("/login", json={"token": token})
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_tries")
        assert 1 <= int(answer.headers["retry-after"]) <= throttle.WINDOW_SECONDS
        assert "set-cookie" not in answer.headers
    assert guarded.get(STATUS, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 429


def test_without_a_token_nothing_is_asked(client: TestClient) -> None:
    assert client.get(STATUS).status_code == 200
    assert client.post("/login", json={"token": "x"}).json() == {"needed": False}


def test_others_can_only_be_served_with_a_token_that_cannot_be_guessed() -> None:
    for host in ("0.0.0.0", "192.168.1.2", "::", "films.local"):
        with pytest.raises(MomentseekError, match="token"):
            ServerSettings(host=host)
    with pytest.raises(MomentseekError, match="16"):
        ServerSettings(host="0.0.0.0", token="short")
