"""The server's own data in a real PostgreSQL: the same answers as with files, and several servers that share them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.core.errors import LibraryBusyError, LibraryError, MomentseekError
from momentseek.server.database import DatabaseLocation, parse_postgres
from momentseek.server.errors import ConflictError
from momentseek.server.judging.store import JUDGEMENTS_FILE, JudgementStore
from momentseek.server.routes.bookmarks import BookmarkStore
from momentseek.server.settings import ServerSettings

TOKEN = "a token that is long enough"
JUDGING = "/api/v1/judging"


@pytest.fixture
def served(database: str, tmp_path: Path) -> Iterator[DatabaseLocation]:
    place = DatabaseLocation(tmp_path, database)
    yield place
    place.close()


def fill(place: DatabaseLocation | Path) -> list[Any]:
    """Judge as people do; all that the store then says."""
    with JudgementStore(place, create=True) as store:
        with store.changes():
            store.add_video("h1", "a.mp4", "Ä.mp4", 60.0)
            store.add_video("h1", "b.mp4", "again", 1.0)
            query = store.add_query("a dog; 100 % 'sure' ?", 2)
            for rank in (1, 2, 3):
                store.add_candidate(query, rank, 1 + (rank - 1) // 2, "h1", 10.1 * rank, 10.1 * rank + 5)
        with store.changes():
            for candidate, who, level in ((1, "Zoë", 3), (2, "ann", 1), (1, "Zoë", 4), (2, "bob", 0)):
                store.add_judgement(candidate, who, level)
        with store.changes():
            assert store.undo_last("Zoë") is not None
            store.set_rule("one")
            store.set_rule("two")
        said = [
            [(q.id, q.text, q.depth, q.batches) for q in store.queries()],
            [(c.id, c.rank, c.label, c.name, c.start, c.end, c.score) for c in store.candidates(query)],
            [(j.id, j.candidate, j.annotator, j.relevance) for j in store.judgements()],
            [(j.id, undone is None) for j, undone in store.history()],
            store.annotators(), store.rule(), store.labels(), store.find_query("nothing"),
        ]  # fmt: skip
        with store.changes():
            store.remove_query(query)
        return [*said, store.candidates(), store.history()]


def test_judgements_are_the_same_as_in_a_file(served: DatabaseLocation, tmp_path: Path) -> None:
    assert fill(served) == fill(tmp_path)


def test_what_people_keep_is_the_same_as_in_a_file(served: DatabaseLocation, tmp_path: Path) -> None:
    def keep(place: DatabaseLocation | Path) -> list[Any]:
        with BookmarkStore(place, create=True) as store:
            for _ in range(2):  # kept twice is kept once
                with store.changes():
                    store.keep_moment("ann", "h1", "a.mp4", 1.5, 3.0, "dog")
                    store.keep_search("ann", "dog", "localiser=whole")
                    store.keep_search("bob", "cat", "")
            with store.changes():
                dropped = store.drop_search("bob", 1), store.drop_search("ann", 1)
            return [dropped, [f.video for f in store.favourites("ann")], len(store.searches("bob"))]

    assert keep(served) == keep(tmp_path) == [(False, True), ["h1"], 1]


def test_a_transaction_that_fails_leaves_nothing_and_the_connection_usable(served: DatabaseLocation) -> None:
    with JudgementStore(served, create=True) as store:

        def half() -> None:
            with store.changes():
                store.add_query("half", 20)
                raise ConflictError("no")

        with pytest.raises(ConflictError):
            half()
        with pytest.raises(LibraryError, match="cannot be used"), store.changes():
            store.add_judgement(1, "ann", 3)  # there is no such candidate
        assert store.queries() == []


def test_a_view_does_not_see_what_others_commit(served: DatabaseLocation) -> None:
    with JudgementStore(served, create=True) as mine, JudgementStore(served) as other:
        with mine.view():
            assert mine.queries() == []
            with other.changes():
                other.add_query("new", 20)
            assert mine.queries() == []
        assert len(mine.queries()) == 1


def test_a_writer_waits_for_another_and_then_says_so(served: DatabaseLocation) -> None:
    class Impatient(JudgementStore):
        wait_seconds = 0.05

    with (
        JudgementStore(served, create=True) as mine,
        mine.changes(),
        Impatient(served) as other,
        pytest.raises(LibraryBusyError, match="another server is writing"),
        other.changes(),
    ):
        pass


def test_many_make_a_new_database_at_once(served: DatabaseLocation) -> None:
    def work(n: int) -> None:
        with JudgementStore(served, create=True) as store, store.changes():
            store.add_query(f"query {n}", 20)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    with JudgementStore(served) as store:
        assert [q.id for q in store.queries()] == list(range(1, 9))


def test_two_servers_are_one(serve: Callable[..., TestClient], place: Path, database: str) -> None:
    first, second = (serve(place, token=TOKEN, database=database) for _ in range(2))
    assert first.post("/login", json={"token": TOKEN}).json() == {"needed": True}
    second.cookies.update(first.cookies)
    made = second.post(f"{JUDGING}/queries", json={"text": "red"})
    assert made.status_code == 201, made.text
    query = made.json()["id"]
    moment = first.get(f"{JUDGING}/queries/{query}/next", params={"annotator": "ann"}).json()["candidate"]
    body = {"query": query, "candidate": moment["id"], "annotator": "ann", "relevance": 3}
    assert first.put(f"{JUDGING}/judgements", json=body).status_code == 200
    assert second.get(f"{JUDGING}/rule").json()["annotators"] == ["ann"]
    second.put("/api/v1/shelf/searches", json={"person": "ann", "query": "red"})
    assert first.get("/api/v1/shelf", params={"person": "ann"}).json()["searches"][0]["query"] == "red"
    assert not (place / JUDGEMENTS_FILE).exists()
    second.post("/logout", json={})
    assert first.get(f"{JUDGING}/rule").status_code == 401, "logged out everywhere"
    stranger = serve(place, token="another token, long enough", database=database)
    first.post("/login", json={"token": TOKEN})
    stranger.cookies.update(first.cookies)
    assert stranger.get(f"{JUDGING}/rule").status_code == 401, "a session belongs to its token"


def test_a_server_survives_a_database_that_went_away(
    serve: Callable[..., TestClient], place: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pg8000.dbapi import connect

    client = serve(place, database=database)
    assert client.get(f"{JUDGING}/rule").status_code == 200
    url, _ = parse_postgres(database)
    db = connect(url.username, url.host, "postgres", url.port)
    db.autocommit = True
    db.cursor().execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                        (url.database,))  # fmt: skip
    assert client.get(f"{JUDGING}/rule").status_code == 200, "a new connection"
    db.cursor().execute(f"DROP DATABASE {url.database} WITH (FORCE)")
    db.close()
    gone = client.get(f"{JUDGING}/rule")
    assert gone.status_code == 503
    assert "cannot be used" in gone.json()["error"]["message"]
    monkeypatch.setattr("momentseek.server.security.users.FRESH_SECONDS", 0.0)
    assert client.get("/api/v1/search", params={"q": "red"}).status_code == 200


def test_text_that_postgres_cannot_store_is_refused(
    serve: Callable[..., TestClient], place: Path, database: str
) -> None:
    client = serve(place, database=database)
    answer = client.put("/api/v1/shelf/searches", content=rb'{"person": "ann", "query": "a\u0000b \ud800"}',
                        headers={"Content-Type": "application/json"})  # fmt: skip
    assert answer.status_code in (200, 422), answer.text


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://ann:secret@127.0.0.1:1/films", "cannot be reached"),
        ("mysql://127.0.0.1/films", "must look like postgresql://"),
        ("postgresql://127.0.0.1", "must look like postgresql://"),
        ("postgresql://127.0.0.1:none/films", "no valid port"),
        ("postgresql://127.0.0.1/films?sslmode=maybe", "sslmode=maybe is not known"),
    ],
)
def test_a_wrong_address_is_refused_in_a_sentence(tmp_path: Path, address: str, told: str) -> None:
    pytest.importorskip("pg8000")
    with pytest.raises(MomentseekError, match=told) as refusal:
        JudgementStore(DatabaseLocation(tmp_path, address))
    assert "secret" not in str(refusal.value)


def test_a_missing_database_is_refused_before_anything_listens(
    momentseek: Callable[..., Any], shared: Path, postgres: str
) -> None:
    result = momentseek("serve", "--library", str(shared / "library"), "--port", "0", "--database", f"{postgres}/none")
    assert result.returncode == 2
    assert 'database "none" does not exist' in result.stderr
    assert "createdb" in result.stderr


def test_the_driver_is_imported_only_when_asked_for() -> None:
    code = "import momentseek.server.app, sys; assert not {'pg8000', 'ray', 'fsspec', 'obstore'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_server_keeps_to_files_unless_told() -> None:
    assert ServerSettings().database is None
