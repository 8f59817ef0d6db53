"""ReadAhead: runs iterators ahead of their consumer, each in a thread."""

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
    """Iterates over the items of all ``sources``, each of which a thread makes, together up to ``depth`` ahead, so that
    their consumer need not wait. The items of one source stay in order.

    An exception of a source reaches the consumer at its place in that order. ``close()`` (also by ``with``, or by
    dropping the object) ends the threads and closes the sources in them; so does exhausting it.

    >>> with ReadAhead(iter("abc"), depth=2) as letters:
    ...     "".join(letters)
    'abc'
    """

    def __init__(self, *sources: Iterable[T], depth: int = 32) -> None:
        self._queue: queue.Queue[T | _Error | _End] = queue.Queue(max(1, depth))
        self._stop = threading.Event()
        self._open = len(sources)
        # The threads must not hold this object, or dropping it would never end them.
        self._threads = [
            threading.Thread(target=_produce, args=(source, self._queue, self._stop), name="read-ahead", daemon=True)
            for source in sources
        ]
        for thread in self._threads:
            thread.start()

    def __iter__(self) -> ReadAhead[T]:
        return self

    def __next__(self) -> T:
        while self._open and not self._stop.is_set():
            item = self._queue.get()
            if isinstance(item, _Error):
                self.close()
                raise item.error
            if not isinstance(item, _End):
                return item
            self._open -= 1
        self.close()
        raise StopIteration

    def close(self) -> None:
        """End the threads and wait for them; nothing more is yielded."""
        self._stop.set()
        for thread in self._threads:
            while thread.is_alive():
                try:
                    self._queue.get(timeout=0.01)  # make room for a producer that waits for some
                except queue.Empty:
                    thread.join(0.01)

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
