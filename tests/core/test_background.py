from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from momentseek.core.workers import BackgroundIterator


def running() -> int:
    return sum(thread.name == "background" for thread in threading.enumerate())


def test_all_items_in_order() -> None:
    assert list(BackgroundIterator(range(1000), depth=3)) == list(range(1000))
    assert running() == 0


def test_several_sources_keep_their_own_order() -> None:
    found = list(BackgroundIterator(range(300), range(1000, 1200), (), depth=3))
    assert [i for i in found if i < 1000] == list(range(300))
    assert [i for i in found if i >= 1000] == list(range(1000, 1200))
    assert list(BackgroundIterator(depth=3)) == []
    assert running() == 0


def test_exception_of_one_source_ends_the_others() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    taken = BackgroundIterator(iter(int, 1), items(), depth=2)
    with pytest.raises(ValueError, match="broken"):
        for _ in taken:
            pass
    assert running() == 0


def test_runs_ahead_up_to_its_depth() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for i in range(100):
            made.append(i)
            yield i

    with BackgroundIterator(items(), depth=5) as taken:
        assert next(taken) == 0
        until = time.monotonic() + 60
        while len(made) < 7 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.05)
        assert len(made) == 7  # one taken, five waiting, one in hand
    assert running() == 0


def test_exception_keeps_its_position() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    taken = BackgroundIterator(items())
    assert next(taken) == 1
    with pytest.raises(ValueError, match="broken"):
        next(taken)
    assert list(taken) == []
    assert running() == 0


def test_closing_ends_the_thread_and_the_iterator() -> None:
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    taken = BackgroundIterator(items(), depth=2)
    assert next(taken) == 1
    taken.close()
    assert closed.wait(60)
    assert running() == 0
    assert list(taken) == []


def test_dropping_it_ends_the_thread() -> None:
    taken = BackgroundIterator(iter(int, 1), depth=2)
    next(taken)
    del taken
    until = time.monotonic() + 60
    while running() and time.monotonic() < until:
        time.sleep(0.01)
    assert running() == 0
