"""Threads that work on a library while the event loop keeps serving.

SQLite connections and engines belong to one thread, so each thread opens the library once and keeps it open.
Other libraries that index the same videos with other encoders are searched the same way, to compare encoders.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from momentseek.api.library import Library
from momentseek.cluster.shard_client import ShardClient
from momentseek.core.errors import MomentseekError
from momentseek.library.encoders import vision_spec
from momentseek.server.errors import ApiError
from momentseek.server.settings import Limits

T = TypeVar("T")
MAX_ENCODED_TOGETHER = 32
"""Largest number of queries that are encoded together."""


class RequestLimiter:
    """Limits how many requests are under way at a time, waiting ones included, and for how long."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit, self._seconds = limit, seconds
        self._pending = 0
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        """Whether any request is under way."""
        return self._pending > 0

    async def run(self, submit: Callable[[], Future[T]]) -> T:
        """Submit work and return its result; 503 if too many requests are waiting, or it takes too long.

        Work that has begun cannot be stopped: it counts until it ends, even if nobody waits for it.
        """
        with self._lock:
            if self._pending >= self._limit:
                raise ApiError(503, "too many requests at once; try again in a moment", headers={"Retry-After": "2"})
            self._pending += 1
        try:
            future = submit()
        except RuntimeError:
            self._leave()
            raise ApiError(
                503, "the server is stopping; try again when it is back", headers={"Retry-After": "5"}
            ) from None
        future.add_done_callback(self._leave)
        waiter = asyncio.wrap_future(future)
        done = None
        try:
            done, _ = await asyncio.wait({waiter}, timeout=self._seconds)
        finally:
            if not done:  # also if the client has gone
                future.cancel()
                waiter.cancel()
        if not done:
            raise ApiError(
                503, f"it took longer than {self._seconds:g} s; ask for less, or try again later", code="too_long",
                headers={"Retry-After": "5"},
            )  # fmt: skip
        return waiter.result()

    def _leave(self, _: Future[T] | None = None) -> None:
        with self._lock:
            self._pending -= 1


class LibraryWorkers:
    """A pool of threads that each have the library open, with limits on the number of requests and their time.

    Queries that wait at the same time are encoded together, which takes half as long as one after another. A query
    never waits for others to arrive: if it is alone, it is encoded alone.
    """

    def __init__(
        self,
        library: Path,
        name: str,
        threads: int,
        waiting: int,
        seconds: float,
        shard_client: ShardClient | None = None,
    ) -> None:
        self._path = library
        self._shard_client = shard_client
        self._limiter = RequestLimiter(threads + waiting, seconds)
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._local = threading.local()
        self._opened: list[Library] = []
        self._lock = threading.Lock()
        self._queries: list[str] = []
        """Texts of searches that are not encoded yet."""
        self._encoding = threading.Lock()

    async def run(self, work: Callable[[Library], T], query: str = "") -> T:
        """Run ``work`` on a thread's library and return its result; 503 if too many are waiting, or it takes too long.

        ``query`` is the text of the query if ``work`` is a search.
        """

        def submit() -> Future[T]:
            if query:
                with self._lock:
                    self._queries.append(query)
            return self._executor.submit(self._run, work, query)

        return await self._limiter.run(submit)

    @property
    def busy(self) -> bool:
        """Whether any work runs or waits."""
        return self._limiter.busy

    def close(self) -> None:
        """Wait for work that runs, drop work that waits, and close the libraries."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            for library in self._opened:
                library.close()
            self._opened.clear()

    def _run(self, work: Callable[[Library], T], query: str) -> T:
        library: Library | None = getattr(self._local, "library", None)
        if library is None:
            library = Library.open(self._path, create=False, shard_client=self._shard_client)
            self._local.library = library
            with self._lock:
                self._opened.append(library)
        if query:
            self._encode_waiting(library, query)
        return work(library)

    def _encode_waiting(self, library: Library, query: str) -> None:
        """Encode the queries that wait, unless another thread has done so with this one; it is waited for."""
        with self._encoding:
            with self._lock:
                some = self._queries[:MAX_ENCODED_TOGETHER] if query in self._queries else []
                del self._queries[: len(some)]
            with suppress(Exception):  # each search says itself what is wrong with it
                library.prepare(some)


class ComparisonLibraries:
    """Libraries to compare with, by the names of their encoders; each has a thread that searches it."""

    def __init__(self, served: Path, others: Iterable[Path], limits: Limits) -> None:
        taken = {_encoder_at(served): served}
        self._workers: dict[str, LibraryWorkers] = {}
        for path in others:
            name = _encoder_at(path)
            if name in taken:
                raise MomentseekError(
                    f"{path}: has the encoder {name!r}, like {taken[name]}; compare with a library of another encoder"
                )
            taken[name] = path
            self._workers[name] = LibraryWorkers(path, "compare", 1, limits.waiting, limits.seconds)

    @property
    def names(self) -> list[str]:
        """The encoders of the libraries to compare with."""
        return list(self._workers)

    async def workers(self, name: str, served: LibraryWorkers) -> LibraryWorkers | None:
        """The workers of the library with an encoder; None for the served library, 422 if no library has it."""
        if not name:
            return None
        if name in self._workers:
            return self._workers[name]
        own = await served.run(encoder_name)
        if name == own:
            return None
        raise ApiError(
            422,
            f"there is no library with the encoder {name!r} here; there are {', '.join((own, *self.names))}, "
            "and momentseek serve --compare-with LIBRARY adds others",
        )

    def close(self) -> None:
        """Close the libraries."""
        for workers in self._workers.values():
            workers.close()


def encoder_name(library: Library) -> str:
    """The name by which clients know the encoder of a library's frames."""
    return public_spec(vision_spec(library.store.catalog))


def public_spec(spec: str) -> str:
    """An encoder's spec as clients may see it: without folders of this machine, and without semicolons.

    >>> public_spec("labels"), public_spec("file:/home/ann/models/clip;2"), public_spec("hub:openai/clip")
    ('labels', 'file:clip,2', 'hub:openai/clip')
    """
    kind, colon, place = spec.partition(":")
    if colon and Path(place).expanduser().is_absolute():
        place = Path(place).name
    return f"{kind}{colon}{place}".replace(";", ",").strip()


def _encoder_at(path: Path) -> str:
    with Library.open(path, create=False) as library:
        return encoder_name(library)
