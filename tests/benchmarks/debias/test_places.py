from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.benchmarks.debias.gaps import density, distance, distance_by_chance, first_places, lean
from momentseek.core.moments.arrays import FloatArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run


@st.composite
def some_places(draw: st.DrawFn) -> FloatArray:
    pairs = draw(st.lists(st.tuples(st.floats(0, 0.98), st.floats(0.01, 1)), min_size=1, max_size=12))
    return np.array([[a, a + (1 - a) * b] for a, b in pairs])


@settings(max_examples=20, deadline=None)
@given(some_places(), some_places(), some_places())
def test_distances_are_distances_and_leans_lie_between_the_truths(a: FloatArray, b: FloatArray, c: FloatArray) -> None:
    one, two, three = density(a), density(b), density(c)
    assert one.sum() == pytest.approx(1)
    assert distance(one, two) == pytest.approx(distance(two, one))
    assert -1e-9 <= distance(one, two) <= 1 + 1e-9
    assert distance(one, three) <= distance(one, two) + distance(two, three) + 1e-9
    assert lean(two, two, three) - lean(three, two, three) == pytest.approx(distance(two, three))
    assert -1e-9 <= lean(one, two, three) <= 1 + 1e-9


def test_no_moment_ends_before_it_starts() -> None:
    grid = density(np.array([[0.49, 0.51]]))
    assert np.tril(grid, -1).sum() == 0


def test_more_moments_are_nearer_by_chance() -> None:
    rng = np.random.default_rng(0)
    few, many = (np.sort(rng.random((n, 2)), axis=1) for n in (20, 2000))
    assert distance_by_chance(many) < distance_by_chance(few) / 3


def test_first_predictions_without_a_place_are_left_out() -> None:
    truth = Judgements.from_groups("abc", [1] * 3, ["v", "v", "w"], [0] * 3, [5] * 3, durations={"v": 10.0})
    run = Run.from_rows(
        [("a", "v", 4, 6, 0.9), ("a", "v", 0, 1, 0.8), ("b", "elsewhere", 0, 5, 0.9), ("c", "w", 0, 5, 0.9)]
    )
    found = first_places(run, truth)
    assert found.query.tolist() == [0]
    assert found.places.tolist() == [[0.4, 0.6]]
