"""Calibration of a model's levels: against the plain kappa, loops, and what intervals should cover."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.benchmarks.datasets.annotation.agreement import kappa
from momentseek.benchmarks.datasets.annotation.calibration import calibrate, two_people_kappa
from momentseek.benchmarks.datasets.annotation.labels import group_labels
from momentseek.core.errors import MomentseekError

levels = st.integers(0, 4)


@given(st.lists(st.tuples(levels, levels), min_size=1, max_size=40))
def test_figures_are_what_loops_count(rows: list[tuple[int, int]]) -> None:
    people = {str(i): a for i, (a, _) in enumerate(rows)}
    model = {str(i): b for i, (_, b) in enumerate(rows)}
    found = calibrate(model, people, {})
    table = np.zeros((5, 5))
    for a, b in rows:
        table[a, b] += 1
    assert (found.confusion == table).all()
    assert found.kappa[0] == pytest.approx(kappa(table, "quadratic"), nan_ok=True)
    assert found.exact[0] == pytest.approx(np.mean([a == b for a, b in rows]))
    assert found.within_one[0] == pytest.approx(np.mean([abs(a - b) <= 1 for a, b in rows]))
    assert found.bias[0] == pytest.approx(np.mean([b - a for a, b in rows]))
    for level in range(5):
        gaps = [b - a for a, b in rows if a == level]
        assert found.bias_by_level[level][0] == pytest.approx(np.mean(gaps) if gaps else np.nan, nan_ok=True)


def test_intervals_draw_whole_queries() -> None:
    """If a query's pairs all repeat one judgement, its pairs bring no more than one would."""
    rng = np.random.default_rng(0)
    people = rng.integers(0, 5, 60)
    model = np.clip(people + rng.integers(-1, 2, 60), 0, 4)
    once = calibrate(dict(enumerate(map(int, model))), dict(enumerate(map(int, people))), {})  # type: ignore[arg-type]
    ids = [f"q{i}/{k}" for i in range(60) for k in range(10)]
    wide = calibrate(
        {p: int(model[int(p[1:].split("/")[0])]) for p in ids},
        {p: int(people[int(p[1:].split("/")[0])]) for p in ids},
        {p: p.split("/")[0] for p in ids},
    )
    assert wide.kappa[0] == pytest.approx(once.kappa[0])
    assert wide.kappa[2] - wide.kappa[1] == pytest.approx(once.kappa[2] - once.kappa[1], rel=0.15)
    assert (wide.pairs, wide.queries) == (600, 60)


def test_a_generous_judge_is_told_from_a_strict_one() -> None:
    people = {f"q{i}/x": i % 4 for i in range(200)}
    generous = calibrate({p: v + 1 for p, v in people.items()}, people, {p: p.split("/")[0] for p in people})
    assert generous.bias == (1.0, 1.0, 1.0)
    assert generous.kappa[0] < 1
    assert np.isnan(generous.bias_by_level[4][0])


def test_pairs_of_one_side_are_counted_and_none_in_common_is_refused() -> None:
    found = calibrate({"a": 1, "b": 2}, {"b": 2, "c": 3, "d": 4}, {})
    assert (found.pairs, found.only_model, found.only_people) == (1, 1, 2)
    with pytest.raises(MomentseekError, match="no pair was judged by both"):
        calibrate({"a": 1}, {"b": 1}, {})


def test_two_people_are_the_ceiling() -> None:
    same = group_labels([(str(i), w, i % 5) for i in range(20) for w in ("ann", "bob")])
    assert two_people_kappa(same) == 1.0
    assert np.isnan(two_people_kappa(group_labels([("a", "ann", 1), ("a", "ann", 2)])))  # one person twice
