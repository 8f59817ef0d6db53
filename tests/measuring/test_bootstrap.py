from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from momentseek.core.errors import MomentseekError
from momentseek.measuring import resampling as bootstrap
from momentseek.measuring.resampling import bootstrap_interval, bootstrap_means, percentiles

NAN = np.nan


def test_agrees_with_the_normal_interval_for_many_queries() -> None:
    values = np.random.default_rng(0).random((3000, 3))
    low, high = bootstrap_interval(values, resamples=4000)
    half = 1.96 * values.std(axis=0) / np.sqrt(len(values))
    np.testing.assert_allclose(low, values.mean(axis=0) - half, atol=half.max() * 0.08)
    np.testing.assert_allclose(high, values.mean(axis=0) + half, atol=half.max() * 0.08)


def test_means_are_those_of_the_drawn_queries() -> None:
    values = np.random.default_rng(1).random((7, 2))
    values[2, 0] = values[5, 1] = NAN
    draws = np.random.default_rng(3).integers(0, 7, size=(40, 7), dtype=np.int32)
    np.testing.assert_allclose(bootstrap_means(values, resamples=40, seed=3), np.nanmean(values[draws], axis=1))


def test_queries_that_do_not_count_change_nothing_for_the_others() -> None:
    values = np.random.default_rng(2).random((200, 2))
    holes = values.copy()
    holes[::3, 1] = NAN
    means, with_holes = bootstrap_means(values, resamples=50), bootstrap_means(holes, resamples=50)
    np.testing.assert_allclose(with_holes[:, 0], means[:, 0])
    assert not np.allclose(with_holes[:, 1], means[:, 1])


def test_differences_of_resampled_means_are_resampled_differences() -> None:
    values = np.random.default_rng(4).random((90, 2))
    means = bootstrap_means(values, resamples=60)
    difference = bootstrap_means(values[:, :1] - values[:, 1:], resamples=60)
    np.testing.assert_allclose(means[:, 0] - means[:, 1], difference[:, 0], atol=1e-14)


def test_the_size_of_the_chunks_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).random((31, 2))
    whole = bootstrap_means(values, resamples=20)
    monkeypatch.setattr(bootstrap, "DRAWS_AT_ONCE", 100)
    np.testing.assert_allclose(bootstrap_means(values, resamples=20), whole, rtol=1e-14)


def test_the_seed_decides() -> None:
    values = np.random.default_rng(6).random((31, 2))
    assert (bootstrap_means(values, seed=1) == bootstrap_means(values, seed=1)).all()
    assert not (bootstrap_means(values, seed=1) == bootstrap_means(values, seed=2)).all()


def test_measures_without_queries_have_no_interval() -> None:
    low, high = bootstrap_interval(np.array([[NAN, 0.5], [NAN, 0.5]]))
    assert np.isnan([low[0], high[0]]).all()
    assert low[1] == high[1] == 0.5
    assert np.isnan(bootstrap_interval(np.empty((0, 2)))).all()


def test_a_rare_measure_uses_the_resamples_in_which_it_counts() -> None:
    low, high = bootstrap_interval(np.array([[0.25], [NAN], [NAN], [NAN]]))
    assert low[0] == high[0] == 0.25


def test_a_wider_level_is_a_wider_interval() -> None:
    means = bootstrap_means(np.random.default_rng(7).random((50, 1)))
    (low90,), (high90,) = percentiles(means, 0.90)
    (low99,), (high99,) = percentiles(means, 0.99)
    assert low99 < low90 < high90 < high99


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(MomentseekError, match="confidence level"):
        bootstrap_interval(np.zeros((2, 1)), level=95)
    with pytest.raises(MomentseekError, match="at least 1"):
        bootstrap_interval(np.zeros((2, 1)), resamples=0)


def test_a_full_test_set_is_quick_and_many_queries_take_little_memory() -> None:
    values = np.random.default_rng(8).random((2781, 9))
    started = time.perf_counter()
    bootstrap_interval(values)
    assert time.perf_counter() - started < 2  # 0.1 s on two quiet cores

    values = np.random.default_rng(9).random((100_000, 9))
    tracemalloc.start()
    try:
        bootstrap_interval(values, resamples=30)
        assert tracemalloc.get_traced_memory()[1] < 80e6
    finally:
        tracemalloc.stop()
