"""ReadAhead: runs an iterator ahead of its consumer, in a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class _Error:
    error: BaseException


class _End:
    pass


class ReadAhead(Iterator[T], Generic[T]):
    """Iterates over ``items``, which a thread makes up to ``depth`` ahead, so that its consumer need not wait.

    An exception of the iterator reaches the consumer at its place in the order. ``close()`` (also by ``with``, or by
    dropping the object) ends the thread and closes the iterator in it; so does exhausting it.

    >>> with ReadAhead(iter("abc"), depth=2) as letters:
    ...     "".join(letters)
    'abc'
    """

    def __init__(self, items: Iterable[T], depth: int = 32) -> None:
        self._queue: queue.Queue[T | _Error | _End] = queue.Queue(max(1, depth))
        self._stop = threading.Event()
        # The thread must not hold this object, or dropping it would never end the thread.
        work = (items, self._queue, self._stop)
        self._thread = threading.Thread(target=_produce, args=work, name="read-ahead", daemon=True)
        self._thread.start()

    def __iter__(self) -> ReadAhead[T]:
        return self

    def __next__(self) -> T:
        if self._stop.is_set():
            raise StopIteration
        item = self._queue.get()
        if isinstance(item, _End):
            self.close()
            raise StopIteration
        if isinstance(item, _Error):
            self.close()
            raise item.error
        return item

    def close(self) -> None:
        """End the thread and wait for it; nothing more is yielded."""
        self._stop.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.01)  # make room for a producer that waits for some
            except queue.Empty:
                self._thread.join(0.01)

    def __enter__(self) -> ReadAhead[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._stop.set()


def _produce(items: Iterable[T], out: queue.Queue[T | _Error | _End], stop: threading.Event) -> None:
    last: _Error | _End = _End()
    iterator = None
    try:
        iterator = iter(items)
        for item in iterator:
            if not _put(out, item, stop):
                break
    except BaseException as e:
        last = _Error(e)
    finally:
        if (close := getattr(iterator, "close", None)) is not None and stop.is_set():
            close()
    _put(out, last, stop)


def _put(out: queue.Queue[T | _Error | _End], item: T | _Error | _End, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            out.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False
