from __future__ import annotations

import threading

import pytest

from momentseek.training.prefetch import Prefetcher


def test_an_error_comes_where_its_value_would_have() -> None:
    def make(n: int) -> int:
        if n == 2:
            raise ValueError("two")
        return n

    with Prefetcher(make, range(5), ahead=4) as made:
        ready = iter(made)
        assert [next(ready), next(ready)] == [0, 1]
        with pytest.raises(ValueError, match="two"):
            next(ready)


def test_no_more_is_made_ahead_than_asked_for() -> None:
    made: list[int] = []
    enough = threading.Event()

    def make(n: int) -> int:
        made.append(n)
        if n == 3:
            enough.set()
        return n

    with Prefetcher(make, range(100), ahead=2) as prefetched:
        ready = iter(prefetched)
        assert next(ready) == 0
        assert enough.wait(5)
        assert max(made) <= 4  # one taken, two waiting, one in hand (and one more if it was just taken)


def test_leaving_early_stops_the_thread() -> None:
    with Prefetcher(lambda n: n, range(10**9), ahead=1) as made:
        assert next(iter(made)) == 0
    assert not any(t.name == "batches" and t.is_alive() for t in threading.enumerate())
