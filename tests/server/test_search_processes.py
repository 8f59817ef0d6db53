from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from momentseek.core.errors import LibraryBusyError, MomentseekError
from momentseek.core.workers import Message, WorkerFailure, WorkerProcess
from momentseek.server import search_processes
from momentseek.server.errors import ApiError
from momentseek.server.search_processes import MAX_TAKEN, SearchProcess, SearchProcesses
from momentseek.server.settings import Limits

QUERIES = ["red", "green", "blue -red", "said:dogs", '"', "red green", "before:never", "dogs running", "2:blue", "x"]


class Echo(WorkerProcess):
    """Stands for a process: answers a query with itself, and notes what it was given at a time."""

    def __init__(self) -> None:
        super().__init__("nothing", timeout=1.0)
        self.taken: list[list[str]] = []
        self.go = threading.Event()

    def run(self, task: str, path: str, settings: dict[str, Any]) -> Generator[Message]:
        queries = [one["q"] for one in settings["asked"]]
        self.taken += [queries] if queries else []
        for query in queries:
            self.go.wait(60)
            if query == "crash":
                raise self.describe("", WorkerFailure("ended"))
            status = {"refused": 400, "fault": 500}.get(query, 200)
            yield Message("item", {"status": status, "code": "refused", "text": query}, query.encode())
        yield Message("end")

    def describe(self, path: str, failure: WorkerFailure) -> MomentseekError:
        return LibraryBusyError(f"it {failure.kind}")


@pytest.fixture
def echo() -> Iterator[tuple[Echo, SearchProcesses]]:
    process = Echo()
    pool = SearchProcesses([process], Limits(waiting=20, seconds=60.0))
    yield process, pool
    process.go.set()
    pool.close()


async def is_taken(process: Echo) -> None:
    """Wait until the process has something to search."""
    async with asyncio.timeout(60):
        while not process.taken:
            await asyncio.sleep(0.01)


async def ask_all(pool: SearchProcesses, queries: list[str], process: Echo) -> list[Any]:
    """The answers or errors of searches that come one right after another, while the process has the first."""
    asked = []
    for query in queries:
        asked.append(asyncio.create_task(pool.search({"q": query})))
        await is_taken(process)
        await asyncio.sleep(0)
    process.go.set()
    return await asyncio.gather(*asked, return_exceptions=True)


def test_those_that_wait_are_taken_together_and_each_gets_its_own(echo: tuple[Echo, SearchProcesses]) -> None:
    process, pool = echo
    queries = [f"query {n}" for n in range(12)]
    assert asyncio.run(ask_all(pool, queries, process)) == [query.encode() for query in queries]
    assert process.taken == [queries[:1], queries[1 : 1 + MAX_TAKEN], queries[1 + MAX_TAKEN :]]
    assert not pool.busy


def test_an_error_or_a_crash_reaches_no_other_search(echo: tuple[Echo, SearchProcesses]) -> None:
    process, pool = echo
    queries = ["first", "second", "refused", "fault", "third", "crash", "fourth"]
    found = asyncio.run(ask_all(pool, queries, process))
    assert [found[at] for at in (0, 1, 4)] == [b"first", b"second", b"third"]
    assert isinstance(found[2], ApiError)
    assert (found[2].status, found[2].message) == (400, "refused")
    assert isinstance(found[3], RuntimeError)
    assert [str(e) for e in found[5:]] == ["it ended", "it ended"]  # what was in the same hands is to be asked again
    assert asyncio.run(pool.search({"q": "next"})) == b"next"


def test_abandoned_searches_are_not_run(echo: tuple[Echo, SearchProcesses]) -> None:
    process, pool = echo

    async def main() -> bytes:
        first = asyncio.create_task(pool.search({"q": "first"}))
        await is_taken(process)
        gone, last = (asyncio.create_task(pool.search({"q": query})) for query in ("gone", "last"))
        await asyncio.sleep(0.05)
        gone.cancel()
        await asyncio.sleep(0.05)
        process.go.set()
        await first
        return await last

    assert asyncio.run(main()) == b"last"
    assert process.taken == [["first"], ["last"]]
    assert not pool.busy


def test_more_than_may_wait_are_refused_with_a_sentence(echo: tuple[Echo, SearchProcesses]) -> None:
    process, pool = echo
    found = asyncio.run(ask_all(pool, ["again"] * 25, process))
    refused = [e for e in found if isinstance(e, ApiError)]
    assert len(refused) == 4
    assert {(e.status, e.headers["Retry-After"]) for e in refused} == {(503, "2")}
    assert all("try again" in e.message for e in refused)


def plain(answer: Any) -> Any:
    return {key: value for key, value in answer.items() if not key.startswith("took")}


@pytest.fixture
def processes(
    serve: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[TestClient, SearchProcesses]]:
    """A server that searches in processes, which are ready."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "helpers"))
    monkeypatch.setattr(search_processes, "WORKER_MODULE", "light_search_worker")

    def make(count: int) -> tuple[TestClient, SearchProcesses]:
        client = serve(search_processes=count)
        pool: SearchProcesses = client.app.state.service.search_processes  # type: ignore[attr-defined]
        for _ in range(600):
            if pool.ready:
                return client, pool
            time.sleep(0.1)
        pytest.fail("the processes do not get ready")

    return make


def test_processes_answer_as_threads_do(
    client: TestClient, processes: Callable[..., tuple[TestClient, SearchProcesses]]
) -> None:
    other, _ = processes(1)
    for query in QUERIES:
        for more in ({}, {"all": True, "k": 3}, {"streams": "speech,name"}):
            one, two = (each.get("/api/v1/search", params={"q": query, **more}) for each in (client, other))
            assert (one.status_code, plain(one.json())) == (two.status_code, plain(two.json()))
            assert one.headers["content-type"] == two.headers["content-type"] == "application/json"
    body = {"q": "red", "streams": ["vision"]}
    assert plain(client.post("/api/v1/search", json=body).json()) == plain(
        other.post("/api/v1/search", json=body).json()
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_process_that_is_killed_is_replaced(processes: Callable[..., tuple[TestClient, SearchProcesses]]) -> None:
    client, _ = processes(1)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    workers = [int(pid) for pid in children if b"light_search_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    answers = [client.get("/api/v1/search", params={"q": "red"}) for _ in range(2)]
    assert answers[0].status_code in (200, 503)  # noticed before it was asked, or after
    assert answers[1].status_code == 200
    assert answers[1].json()["hits"]


def test_a_library_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with SearchProcess(tmp_path / "none", 5.0) as process, pytest.raises(MomentseekError, match="cannot be started"):
        list(process.run("search", "", {"asked": [], "rerankers": {}}))
