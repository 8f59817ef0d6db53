"""Processes that search for a server, so that searches run in parallel on several processors.

In one process Python runs one search at a time, whatever the number of threads. Each process here has the library open,
with the same files mapped into memory, and its own encoders. An idle process takes its share of the waiting searches
and encodes their queries together; each answer is sent as soon as it is ready.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

from momentseek.core.errors import LibraryBusyError, MomentseekError
from momentseek.core.workers import Message, WorkerFailure, WorkerProcess
from momentseek.server.errors import ApiError
from momentseek.server.settings import Limits
from momentseek.server.workers import RequestLimiter

log = logging.getLogger("momentseek.server")
WORKER_MODULE = "momentseek.server.search_worker"
MAX_TAKEN = 8
"""Largest number of searches that a process takes at a time."""
START_SECONDS = 300.0
"""Time in which a process must have loaded its encoders."""

Asked = Mapping[str, Any]
"""The parameters of a search."""


class SearchProcess(WorkerProcess):
    """A process that searches a library."""

    def __init__(self, library: Path, seconds: float) -> None:
        super().__init__(WORKER_MODULE, [str(library)], timeout=seconds, start_timeout=START_SECONDS)

    def describe(self, path: str, failure: WorkerFailure) -> MomentseekError:
        """The error for searches that failed because of the process."""
        if failure.kind in ("unready", "broken", "refused"):
            return MomentseekError(f"a process that searches cannot be started ({failure.text})")
        return LibraryBusyError(f"a process that searches has stopped ({failure.kind}); try again in a moment")


class SearchProcesses:
    """Several processes that search a library, each with a thread that gives it work."""

    def __init__(
        self, processes: Sequence[WorkerProcess], limits: Limits, rerankers: Mapping[str, Path] | None = None
    ) -> None:
        self._limiter = RequestLimiter(len(processes) + limits.waiting, limits.seconds)
        self._rerankers = {name: str(folder) for name, folder in (rerankers or {}).items()}
        self._waiting: queue.SimpleQueue[tuple[Future[bytes], Asked] | None] = queue.SimpleQueue()
        self._ready = threading.Event()
        self._processes = processes
        self._threads = [
            threading.Thread(target=self._give_work, args=(process,), name="search-process", daemon=True)
            for process in processes
        ]
        for thread in self._threads:
            thread.start()

    @property
    def ready(self) -> bool:
        """Whether a process has loaded its encoders."""
        return self._ready.is_set()

    @property
    def busy(self) -> bool:
        """Whether any search runs or waits."""
        return self._limiter.busy

    async def search(self, asked: Asked) -> bytes:
        """Return the body of the answer to a search; 503 if too many are waiting, or it takes too long."""

        def submit() -> Future[bytes]:
            future: Future[bytes] = Future()
            self._waiting.put((future, asked))
            return future

        return await self._limiter.run(submit)

    def close(self) -> None:
        """End the processes after their current searches; waiting searches are dropped."""
        while not self._waiting.empty():
            waiting = self._waiting.get()
            if waiting is not None:
                waiting[0].cancel()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.close()

    def _give_work(self, process: WorkerProcess) -> None:
        """Give a process searches, several at a time, until the pool is closed."""
        self._do(process, [])  # loads the encoders
        self._ready.set()
        while (first := self._waiting.get()) is not None:
            taken = [first]
            share = min(MAX_TAKEN, -(-(1 + self._waiting.qsize()) // len(self._processes)))
            while len(taken) < share:
                try:
                    more = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    self._waiting.put(None)  # for another thread's end, or this one's
                    break
                taken.append(more)
            self._do(process, [(future, asked) for future, asked in taken if future.set_running_or_notify_cancel()])

    def _do(self, process: WorkerProcess, taken: list[tuple[Future[bytes], Asked]]) -> None:
        settings = {"asked": [asked for _, asked in taken], "rerankers": self._rerankers}
        left = [future for future, _ in taken]
        try:
            with closing(process.run("search", "", settings)) as messages:
                for message in messages:
                    if message.kind == "item" and left:
                        _settle(left.pop(0), message)
        except MomentseekError as e:
            for future in left:
                future.set_exception(e)


def _settle(future: Future[bytes], message: Message) -> None:
    """Set the result of a search, or its error."""
    content = message.content
    if content["status"] == 200:
        future.set_result(bytes(message.payload))
    elif content["status"] == 500:
        log.error("a search failed in its process: %s", content["text"])
        future.set_exception(RuntimeError(content["text"]))
    else:
        headers = {"Retry-After": "2"} if content["status"] == 503 else {}
        future.set_exception(ApiError(content["status"], content["text"], code=content["code"], headers=headers))
