"""Threads that work on a library while the event loop goes on serving.

SQLite connections and engines belong to one thread, so each thread opens the library once and keeps it open.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from momentseek.api import Library, open_library
from momentseek.server.errors import ApiError

if TYPE_CHECKING:
    from momentseek.search.shards.fan_out import FanOut

T = TypeVar("T")


class LibraryWorkers:
    """A pool of threads that each have the library open, with limits on how many requests wait and for how long."""

    def __init__(
        self, library: Path, name: str, threads: int, waiting: int, seconds: float, fan_out: FanOut | None = None
    ) -> None:
        self._path = library
        self._fan_out = fan_out
        self._max_pending = threads + waiting
        self._seconds = seconds
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._local = threading.local()
        self._opened: list[Library] = []
        self._pending = 0
        self._lock = threading.Lock()

    async def run(self, work: Callable[[Library], T]) -> T:
        """Run ``work`` on a thread's library and return its result; 503 if too many wait, or it takes too long.

        Work that has begun cannot be stopped: it occupies its thread until it ends, even if nobody waits for it.
        """
        with self._lock:
            if self._pending >= self._max_pending:
                raise ApiError(503, "too many requests at once; try again in a moment", headers={"Retry-After": "2"})
            self._pending += 1
        try:
            future = self._executor.submit(self._run, work)
        except RuntimeError:
            self._leave()
            raise ApiError(
                503, "the server is stopping; try again when it is back", headers={"Retry-After": "5"}
            ) from None
        future.add_done_callback(self._leave)
        waiter = asyncio.wrap_future(future)
        done, _ = await asyncio.wait({waiter}, timeout=self._seconds)
        if not done:
            future.cancel()
            waiter.cancel()
            raise ApiError(
                503, f"it took longer than {self._seconds:g} s; ask for less, or try again later", code="too_long",
                headers={"Retry-After": "5"},
            )  # fmt: skip
        return waiter.result()

    @property
    def busy(self) -> bool:
        """Whether any work runs or waits."""
        return self._pending > 0

    def close(self) -> None:
        """Wait for work that runs, drop work that waits, and close the libraries."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        with self._lock:
            for library in self._opened:
                library.close()
            self._opened.clear()

    def _run(self, work: Callable[[Library], T]) -> T:
        library: Library | None = getattr(self._local, "library", None)
        if library is None:
            library = open_library(self._path, create=False, fan_out=self._fan_out)
            self._local.library = library
            with self._lock:
                self._opened.append(library)
        return work(library)

    def _leave(self, _: Future[T] | None = None) -> None:
        with self._lock:
            self._pending -= 1
