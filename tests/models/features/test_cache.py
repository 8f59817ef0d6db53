from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.models.features.store import ArrayCache


def kilobytes(n: int) -> np.ndarray:
    return np.zeros(n * 250, np.float32)


@given(st.lists(st.integers(0, 9), max_size=60))
def test_never_holds_more_than_it_may(keys: list[int]) -> None:
    cache = ArrayCache(0.004)
    for key in keys:
        cache.get(key, lambda k=key: kilobytes(k % 3 + 1))
        assert cache.bytes <= 4000


def test_forgets_what_was_used_longest_ago() -> None:
    cache = ArrayCache(0.002)
    made: list[str] = []

    def get(key: str) -> None:
        def make() -> np.ndarray:
            made.append(key)
            return kilobytes(1)

        cache.get(key, make)

    for key in ("a", "b", "a", "c", "a", "b"):
        get(key)
    assert made == ["a", "b", "c", "b"]


def test_what_is_too_large_is_made_every_time() -> None:
    cache = ArrayCache(0.001)
    assert cache.get("a", lambda: kilobytes(5)).nbytes == 5000
    assert len(cache) == 0
