from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are used
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from momentseek.core.moments.arrays import FloatArray
from momentseek.measuring import significance
from momentseek.measuring.significance import (
    differences,
    effect_size,
    holm,
    outcomes,
    paired_t_test,
    randomisation_test,
)

NAN = np.nan
scores = st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.3, 0.5, 1 / 3, 0.63, 1.0])
samples = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12), elements=scores)


def column(*values: float) -> FloatArray:
    return np.array(values)[:, None]


@given(samples)
def test_exact_randomisation_is_a_symmetric_p_value_whatever_the_order(values: FloatArray) -> None:
    difference = differences(values, np.roll(values, 1, axis=1))
    p = randomisation_test(difference)
    assert ((p > 0) & (p <= 1)).all()
    np.testing.assert_array_equal(randomisation_test(-difference), p)
    np.testing.assert_array_equal(randomisation_test(np.random.default_rng(len(p)).permutation(difference)), p)
    np.testing.assert_allclose(randomisation_test(difference * 3.7), p)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [3, 6, 10])
def test_exact_randomisation_agrees_with_scipy(size: int, seed: int) -> None:
    # Multiples of 0.1, so that many flips tie with the observed sum and rounding must not tell them apart.
    difference = np.random.default_rng(seed).integers(-5, 6, size) / 10
    expected = scipy.stats.permutation_test(
        (difference, np.zeros(size)),
        lambda a, b, axis: np.round(np.mean(a - b, axis=axis), 9),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    ).pvalue
    assert randomisation_test(difference[:, None])[0] == pytest.approx(expected, rel=1e-12)


def test_random_flips_approach_the_exact_p_value(monkeypatch: pytest.MonkeyPatch) -> None:
    difference = np.random.default_rng(2).normal(0.03, 0.1, (14, 6))
    exact = randomisation_test(difference)
    monkeypatch.setattr(significance, "MAX_EXACT_QUERIES", 0)
    drawn = randomisation_test(difference, resamples=20_000)
    np.testing.assert_allclose(drawn, exact, atol=4 * 0.5 / np.sqrt(20_000))
    assert not (drawn == exact).all()


def test_random_flips_are_symmetric_seeded_and_the_same_in_any_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    difference = np.random.default_rng(3).normal(0.02, 0.1, (101, 3))
    p = randomisation_test(difference, resamples=500)
    np.testing.assert_array_equal(randomisation_test(-difference, resamples=500), p)
    assert not (randomisation_test(difference, resamples=500, seed=1) == p).all()
    monkeypatch.setattr(significance, "SIGNS_AT_ONCE", 1000)
    np.testing.assert_array_equal(randomisation_test(difference, resamples=500), p)


def test_equal_systems_have_p_one_and_a_clear_winner_the_smallest() -> None:
    difference = np.column_stack([np.zeros(100), np.full(100, 0.1)])
    assert randomisation_test(difference, resamples=999).tolist() == [1.0, 1 / 1000]


def test_a_tie_in_the_statistic_counts_as_extreme_despite_rounding() -> None:
    signs = np.array([1.0] * 11 + [-1.0] * 9)
    whole, tenths = randomisation_test(column(*signs)), randomisation_test(column(*(signs * (0.3 - 0.2))))
    assert whole == tenths
    assert whole[0] == pytest.approx(2 * scipy.stats.binom.sf(10, 20, 0.5), abs=0.02)


@pytest.mark.parametrize("size", [2, 3, 30, 2781])
def test_t_agrees_with_scipy(size: int) -> None:
    generator = np.random.default_rng(size)
    first, second = generator.random((2, size, 4))
    second[:, 3] += 0.2
    np.testing.assert_allclose(paired_t_test(first - second), scipy.stats.ttest_rel(first, second).pvalue, rtol=1e-10)


def test_t_leaves_out_queries_that_do_not_count() -> None:
    difference = np.random.default_rng(1).normal(0.1, 0.3, (40, 1))
    holes = np.insert(difference, [0, 7, 40], NAN, axis=0)
    np.testing.assert_allclose(paired_t_test(holes), paired_t_test(difference), rtol=1e-13)
    np.testing.assert_allclose(effect_size(holes), effect_size(difference), rtol=1e-13)
    np.testing.assert_array_equal(randomisation_test(holes[:10]), randomisation_test(difference[:8]))


def test_t_at_its_limits() -> None:
    assert paired_t_test(column(0.5))[0] == 1
    assert paired_t_test(column(0.0, 0.0, 0.0))[0] == 1
    assert 0 < paired_t_test(column(0.1, 0.1, 0.1))[0] < 1e-300
    assert paired_t_test(column(NAN, NAN))[0] == 1


@pytest.mark.parametrize("test", [lambda d: randomisation_test(d, resamples=1000), paired_t_test])
def test_p_values_are_uniform_without_a_difference(test: Callable[[FloatArray], FloatArray]) -> None:
    p = test(np.random.default_rng(11).normal(0, 0.2, (60, 400)))
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01
    assert 0.02 < (p <= 0.05).mean() < 0.09


@given(arrays(np.float64, st.integers(1, 12), elements=st.floats(1e-9, 1)))
def test_holm_is_above_the_raw_values_and_keeps_their_order(p: FloatArray) -> None:
    corrected = holm(p)
    assert (corrected >= p).all()
    assert (corrected <= 1).all()
    assert (np.diff(corrected[np.argsort(p, kind="stable")]) >= 0).all()
    assert corrected.min() == pytest.approx(min(1, p.min() * len(p)))
    assert (corrected <= np.minimum(1, p * len(p))).all()  # never worse than Bonferroni


def test_holm_worked_by_hand() -> None:
    assert holm(np.array([0.01, 0.02, 0.03, 0.005])).tolist() == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert holm(np.array([0.2])).tolist() == [0.2]
    assert holm(np.array([])).tolist() == []


def test_effect_sizes() -> None:
    difference = np.column_stack([[0.1, 0.3, 0.2], [0, 0, 0], [0.2, 0.2, 0.2], [-0.2, -0.2, -0.2], [NAN, NAN, 0.4]])
    assert effect_size(difference).tolist()[:4] == [pytest.approx(2.0), 0.0, np.inf, -np.inf]
    assert np.isnan(effect_size(difference)[4])


@given(samples)
def test_outcomes_count_every_query_and_mirror(values: FloatArray) -> None:
    difference = differences(values, values[::-1])
    wins, ties, losses = outcomes(difference)
    assert (wins + ties + losses == len(values)).all()
    assert [n.tolist() for n in outcomes(-difference)] == [losses.tolist(), ties.tolist(), wins.tolist()]


def test_sums_in_another_order_are_ties() -> None:
    assert differences(column(0.1 + 0.2), column(0.3))[0, 0] == 0
    assert differences(column(0.5), column(0.4999))[0, 0] > 0


def test_many_queries_need_little_memory() -> None:
    difference = np.random.default_rng(0).normal(0, 0.2, (100_000, 3))
    tracemalloc.start()
    try:
        randomisation_test(difference, resamples=40)
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()
