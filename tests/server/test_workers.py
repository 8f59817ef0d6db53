from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from momentseek.api.library import Library
from momentseek.core.errors import MomentseekError
from momentseek.server.errors import ApiError
from momentseek.server.workers import LibraryWorkers


@pytest.fixture
def library(tmp_path: Path) -> Path:
    Library.open(tmp_path / "library", create=True).close()
    return tmp_path / "library"


def test_each_thread_has_a_library_of_its_own(library: Path) -> None:
    workers = LibraryWorkers(library, "test", 3, 100, 60)
    owners: dict[int, set[int]] = {}

    def work(opened: Library) -> int:
        owners.setdefault(id(opened), set()).add(threading.get_ident())
        time.sleep(0.005)
        return len(opened.videos())

    async def main() -> list[int]:
        return await asyncio.gather(*(workers.run(work) for _ in range(40)))

    assert asyncio.run(main()) == [0] * 40
    workers.close()
    assert 1 <= len(owners) <= 3
    assert all(len(threads) == 1 for threads in owners.values())


def test_more_than_may_wait_are_told_to_come_back(library: Path) -> None:
    workers = LibraryWorkers(library, "test", 1, 2, 60)
    go = threading.Event()

    async def main() -> list[object]:
        asked = [asyncio.create_task(workers.run(lambda _: go.wait(60))) for _ in range(6)]
        await asyncio.sleep(0.05)
        go.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(main())
    refused = [a for a in answers if isinstance(a, ApiError)]
    assert len(refused) == 3
    assert all((e.status, e.headers["Retry-After"]) == (503, "2") for e in refused)
    assert answers.count(True) == 3
    assert asyncio.run(workers.run(lambda _: 7)) == 7
    workers.close()


def test_slow_work_is_abandoned_and_keeps_its_slot_until_it_ends(library: Path) -> None:
    workers = LibraryWorkers(library, "test", 1, 0, 0.1)
    go = threading.Event()

    async def main() -> None:
        with pytest.raises(ApiError) as slow:
            await workers.run(lambda _: go.wait(60))
        assert (slow.value.status, slow.value.code) == (503, "too_long")
        with pytest.raises(ApiError) as full:
            await workers.run(lambda _: True)
        assert full.value.code == "busy"
        go.set()
        for _ in range(1000):
            await asyncio.sleep(0.01)
            with suppress(ApiError):
                assert await workers.run(lambda _: True)
                return
        pytest.fail("the place was not given back")

    asyncio.run(main())
    workers.close()


def test_the_loop_goes_on_while_threads_work(library: Path) -> None:
    workers = LibraryWorkers(library, "test", 1, 5, 60)
    go = threading.Event()

    async def main() -> int:
        task = asyncio.create_task(workers.run(lambda _: go.wait(60)))
        turns = 0
        while not task.done():
            turns += 1
            if turns == 50:
                go.set()
            await asyncio.sleep(0.001)
        return turns

    assert asyncio.run(main()) >= 50
    workers.close()


def test_errors_reach_whoever_asked(library: Path) -> None:
    workers = LibraryWorkers(library, "test", 1, 5, 60)

    def fail(_: Library) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(workers.run(fail))
    workers.close()
    with pytest.raises(ApiError, match="stopping"):
        asyncio.run(workers.run(lambda _: 1))


def test_queries_that_wait_are_encoded_together(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[list[str]] = []

    def prepare(_: Library, queries: list[str]) -> None:
        encoded.append(list(queries))
        raise MomentseekError("each search says itself what is wrong")

    monkeypatch.setattr(Library, "prepare", prepare)
    workers = LibraryWorkers(library, "test", 1, 100, 60)
    go = threading.Event()

    async def main() -> list[object]:
        asked = [asyncio.create_task(workers.run(lambda _: go.wait(60), "first"))]
        async with asyncio.timeout(60):
            while not encoded:  # what comes meanwhile would be encoded with it
                await asyncio.sleep(0.01)
        asked += [asyncio.create_task(workers.run(lambda _, n=n: n, f"query {n}")) for n in range(3)]
        await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(*asked)

    assert asyncio.run(main()) == [True, 0, 1, 2]
    workers.close()
    assert [batch for batch in encoded if batch] == [["first"], ["query 0", "query 1", "query 2"]]
