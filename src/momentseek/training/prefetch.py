"""Making the next batches while the model is trained on this one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")


class Prefetcher(Generic[T]):
    """``make(key)`` for each key, in order, made by one thread at most ``ahead`` before they are asked for.

    An error while making one is raised where it would have been returned. Close it, or use it with ``with``.

    >>> with Prefetcher(lambda n: n * n, range(3), ahead=2) as squares:
    ...     list(squares)
    [0, 1, 4]
    """

    def __init__(self, make: Callable[[K], T], keys: Iterable[K], ahead: int) -> None:
        self._ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(maxsize=ahead)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(make, iter(keys)), name="batches", daemon=True)
        self._thread.start()

    def _work(self, make: Callable[[K], T], keys: Iterator[K]) -> None:
        try:
            for key in keys:
                if not self._put(make(key), None):
                    return
            self._put(None, StopIteration())
        except BaseException as e:
            self._put(None, e)

    def _put(self, made: T | None, error: BaseException | None) -> bool:
        while not self._stop.is_set():
            try:
                self._ready.put((made, error), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Iterator[T]:
        while True:
            made, error = self._ready.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield made  # type: ignore[misc]

    def close(self) -> None:
        """Stop making; what was made ahead is forgotten."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Prefetcher[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
