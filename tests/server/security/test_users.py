"""People with tokens of their own judge and keep under their own names, and under no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.core.errors import LibraryError, MomentseekError
from momentseek.server.database import DatabaseLocation
from momentseek.server.security import users as module
from momentseek.server.security.users import Users

Serve = Callable[..., TestClient]
SHARED = "the shared token of the server"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)


@pytest.fixture
def people(place: Path) -> Users:
    return Users(DatabaseLocation(place))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def judge(client: TestClient, who: str, relevance: int, **more: Any) -> Any:
    task = client.get("/api/v1/judging/queries/1/next", params={"annotator": who}, **more)
    if task.status_code != 200:
        return task
    body = {"query": 1, "candidate": task.json()["candidate"]["id"], "annotator": who, "relevance": relevance}
    return client.put("/api/v1/judging/judgements", json=body, **more)


def test_without_users_names_are_taken_as_given(serve: Serve, place: Path) -> None:
    client = serve(place)
    client.post("/api/v1/judging/queries", json={"text": "green"})
    assert judge(client, "ann", 3).status_code == judge(client, "bob", 2).status_code == 200
    assert client.get("/api/v1/status").json()["user"] is None
    assert not (place / "users.sqlite").exists()


@pytest.mark.parametrize("token", [None, SHARED])
def test_nobody_judges_undoes_or_reads_for_another(serve: Serve, place: Path, people: Users, token: str | None) -> None:
    ann, bob = people.add("ann"), people.add("bob")
    client = serve(place, token=token)
    client.post("/api/v1/judging/queries", json={"text": "green"}, headers=bearer(ann))
    assert judge(client, "ann", 3, headers=bearer(ann)).status_code == 200
    for who, sent in (("ann", bob), ("carl", bob), ("carl", ann)):
        answer = judge(client, who, 0, headers=bearer(sent))
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong_name")
    json = {"Content-Type": "application/json"}
    undo = client.delete("/api/v1/judging/judgements/last", params={"annotator": "ann"}, headers=bearer(bob) | json)
    assert undo.status_code == 403
    kept = {"person": "ann", "query": "green", "settings": ""}
    assert client.put("/api/v1/shelf/searches", json=kept, headers=bearer(ann)).status_code == 200
    assert client.get("/api/v1/shelf", params={"person": "ann"}, headers=bearer(bob)).status_code == 403
    assert client.get("/api/v1/shelf", params={"person": "ann"}, headers=bearer(ann)).status_code == 200
    shared = {} if token is None else bearer(token)
    answer = client.get("/api/v1/shelf", params={"person": "ann"}, headers=shared)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "no_name")
    assert client.get("/api/v1/search", params={"q": "green"}, headers=shared).status_code == 200
    assert client.get("/api/v1/status", headers=bearer(ann)).json()["user"] == "ann"
    assert client.get("/api/v1/status", headers=bearer("x" * 43)).status_code == 401
    labels = client.get("/api/v1/judging/rule", headers=bearer(bob)).json()
    assert labels["annotators"] == ["ann"]


def test_users_that_cannot_be_read_are_no_fault_of_the_server(
    serve: Serve, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Users) -> dict[str, str]:
        raise LibraryError("the database cannot be reached; start it")

    client = serve(place, token=SHARED)
    monkeypatch.setattr(Users, "names", refuse)
    answer = client.get("/api/v1/search", params={"q": "green"}, headers=bearer(SHARED))
    assert (answer.status_code, answer.json()["error"]["message"]) == (503, "the database cannot be reached; start it")


@pytest.mark.parametrize("started", ["before", "after"])
def test_nobody_can_use_a_name_after_the_user_file_was_emptied(
    serve: Serve, place: Path, people: Users, started: str
) -> None:
    """As a full disk or a power cut leaves it: that is no library without users."""
    people.add("ann")
    client = serve(place, token=SHARED)
    client.post("/api/v1/judging/queries", json={"text": "red"}, headers=bearer(SHARED))
    assert judge(client, "ann", 3, headers=bearer(SHARED)).status_code == 403
    for path in place.glob("users.sqlite*"):
        path.write_bytes(b"")
    client = client if started == "before" else serve(place, token=SHARED)
    assert judge(client, "ann", 3, headers=bearer(SHARED)).status_code == (403 if started == "before" else 503)
    with pytest.raises(LibraryError, match="is empty, as a full disk leaves it"):
        people.list()
    people.add("ann")
    assert [name for name, _ in people.list()] == ["ann"], "adding them again is a way out"


def test_judgements_that_were_emptied_are_missed(serve: Serve, place: Path) -> None:
    client = serve(place)
    client.post("/api/v1/judging/queries", json={"text": "red"})
    assert judge(client, "ann", 3).status_code == 200
    for path in place.glob("judgements.sqlite*"):
        path.write_bytes(b"")
    found = client.get("/api/v1/judging/consensus")
    assert found.status_code == 503
    assert "bring the judgements back from a copy" in found.json()["error"]["message"]


def test_a_session_is_its_owners_and_ends_with_the_token(serve: Serve, place: Path, people: Users) -> None:
    ann = people.add("ann")
    people.add("bob")
    client = serve(place, token=SHARED)
    assert client.post("/login", json={"token": ann}).json() == {"needed": True}
    assert client.get("/api/v1/status").json()["user"] == "ann"
    cookie = next(iter(client.cookies.jar))
    forged = {"Cookie": f"{cookie.name}={cookie.value.partition('.')[0]}.{b'bob'.hex()}"}
    assert serve(place, token=SHARED).get("/api/v1/status", headers=forged).status_code == 401
    people.remove("ann")
    assert client.get("/api/v1/status").status_code == 401


def test_a_new_token_replaces_the_old_and_none_is_kept(serve: Serve, place: Path, people: Users) -> None:
    old, new = people.add("Zoë"), people.add("Zoe\u0308")
    client = serve(place, token=SHARED)
    assert client.get("/api/v1/status", headers=bearer(old)).status_code == 401
    assert client.get("/api/v1/status", headers=bearer(new)).json()["user"] == "Zoë"
    assert new.encode() not in (place / "users.sqlite").read_bytes()
    with pytest.raises(MomentseekError, match="printable"):
        people.add("a\nb")
    with pytest.raises(MomentseekError, match="there is no user"):
        people.remove("nobody")


def test_the_command_prints_a_token_once(momentseek: Callable[..., Any], serve: Serve, place: Path) -> None:
    made = momentseek("serve", "--library", place, "users", "add", "ann")
    assert (made.returncode, len(made.stdout.strip())) == (0, 43), made.stderr
    assert momentseek("serve", "--library", place, "users", "list").stdout.startswith("ann  20")
    client = serve(place, token=SHARED)
    assert client.get("/api/v1/status", headers=bearer(made.stdout.strip())).json()["user"] == "ann"
    assert momentseek("serve", "--library", place, "users", "remove", "ann").returncode == 0
    assert momentseek("serve", "--library", place, "users", "list").stdout == ""
