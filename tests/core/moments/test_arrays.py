from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from momentseek.core.moments.arrays import positions_of

NUMBERS = st.lists(st.integers(0, 2**40) | st.integers(0, 50), max_size=60)


@given(NUMBERS, NUMBERS)
def test_positions_equal_a_dictionary(wanted: list[int], known: list[int]) -> None:
    ascending = sorted(set(known))
    place = {number: i for i, number in enumerate(ascending)}
    found = positions_of(np.array(wanted, np.int64), np.array(ascending, np.int64))
    assert found.tolist() == [place.get(number, -1) for number in wanted]


def test_hash_collisions_are_resolved() -> None:
    known = np.sort(np.random.default_rng(0).choice(10**9, 5000, replace=False))
    wanted = np.concatenate([known[::-1], known + 1])
    found = positions_of(wanted, known)
    assert (found[:5000] == np.arange(5000)[::-1]).all()
    assert set(found[5000:].tolist()) <= {-1, *np.flatnonzero(np.isin(known + 1, known)) + 1}
