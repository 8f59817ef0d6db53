from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from momentseek.benchmarks.debias.gaps import gaps
from momentseek.benchmarks.debias.systems import GAP_MEASURES, RECALL_MEASURES, SeedScores
from momentseek.measuring.resampling import spread


def scored(rng: np.random.Generator, queries: int, seeds: int, level: float) -> SeedScores:
    values = (rng.random((seeds, queries, len(RECALL_MEASURES))) < level).astype(float)
    return SeedScores(values.mean(axis=1), values.mean(axis=0))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 4), st.floats(0.1, 0.9), st.floats(0.1, 0.9))
def test_gaps_add_up(seed: int, seeds: int, one: float, two: float) -> None:
    rng = np.random.default_rng(seed)
    iid = [scored(rng, 30, seeds, one), scored(rng, 30, seeds, two)]
    ood = [scored(rng, 20, seeds, two), scored(rng, 20, seeds, one)]
    found = gaps(["a", "b"], iid, ood)
    assert [g.measure for g in found] == [*GAP_MEASURES, *GAP_MEASURES]
    for first, second in zip(found[: len(GAP_MEASURES)], found[len(GAP_MEASURES) :], strict=True):
        assert first.closed is None
        assert second.closed is not None
        assert second.iid_gain is not None
        assert second.ood_gain is not None
        assert first.gap.mean == pytest.approx(first.iid.mean - first.ood.mean)
        assert first.interval.low - 1e-9 <= first.gap.mean <= first.interval.high + 1e-9
        assert second.closed.value == pytest.approx(first.gap.mean - second.gap.mean)
        assert second.closed.value == pytest.approx(second.ood_gain.value - second.iid_gain.value)
        assert first.gap.count == seeds


def test_a_system_has_closed_nothing_of_its_own_gap() -> None:
    rng = np.random.default_rng(0)
    one, two = scored(rng, 50, 1, 0.7), scored(rng, 50, 1, 0.3)
    same = gaps(["a", "again"], [one, one], [two, two])[-1].closed
    assert same is not None
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_a_gain_in_every_query_is_clear() -> None:
    worse, better = (SeedScores(np.full((1, 18), v), np.full((9, 18), v)) for v in (0.2, 0.6))
    gain = gaps(["a", "b"], [better, better], [worse, better])[-1].ood_gain
    assert gain is not None
    assert gain.low == pytest.approx(0.4)


def test_without_iid_there_is_no_gap() -> None:
    rng = np.random.default_rng(0)
    none = SeedScores(np.full((1, 18), np.nan), np.full((5, 18), np.nan))
    found = gaps(["a"], [none], [scored(rng, 5, 1, 0.5)])[0]
    assert math.isnan(found.gap.mean)
    assert math.isnan(found.relative)
    assert not math.isnan(found.ood.mean)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=9))
def test_spread_is_that_of_a_sample(values: list[float]) -> None:
    found = spread([*values, math.nan])
    assert found.mean == pytest.approx(np.mean(values), abs=1e-9)
    assert found.sd == pytest.approx(np.std(values, ddof=1), abs=1e-9)
    assert found.count == len(values)
