from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are used

from momentseek.measuring import significance as module
from momentseek.measuring.significance import randomisation_test, ranges_by_listing, ranges_by_shuffling, tukey_test

NAN = np.nan


def test_tukey_of_two_systems_is_the_randomisation_test() -> None:
    values = np.random.default_rng(5).random((80, 2, 2))
    p = tukey_test(values)
    np.testing.assert_allclose(p[0, 1], randomisation_test(values[:, 0] - values[:, 1]), atol=1e-12)
    assert (p[0, 0] == 1).all()


def test_tukey_agrees_with_trying_every_order() -> None:
    values = np.random.default_rng(8).random((4, 3, 1)) + np.array([0.0, 0.1, 0.9])[:, None]
    observed = np.abs(values.mean(axis=0) - values.mean(axis=0).T)
    ranges = [
        np.ptp(np.mean([query[list(order)] for query, order in zip(values[:, :, 0], orders, strict=True)], axis=0))
        for orders in itertools.product(itertools.permutations(range(3)), repeat=4)
    ]
    expected = (np.array(ranges)[:, None, None] >= observed - 1e-12).mean(axis=0)
    np.testing.assert_allclose(tukey_test(values, resamples=10_000)[:, :, 0], expected, atol=0.02)


@pytest.mark.parametrize("systems", [3, 4, 6])
def test_listing_and_shuffling_draw_the_same_distribution(systems: int) -> None:
    values = np.random.default_rng(systems).normal(0, 0.2, (30, systems, 2))
    values -= values.mean(axis=1, keepdims=True)
    listed = ranges_by_listing(values, 3000, np.random.default_rng(1))
    shuffled = ranges_by_shuffling(values, 3000, np.random.default_rng(2))
    for measure in range(2):
        assert scipy.stats.ks_2samp(listed[:, measure], shuffled[:, measure]).pvalue > 0.01


def test_listing_is_the_same_in_any_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).random((33, 4, 2))
    p = tukey_test(values, resamples=200)
    monkeypatch.setattr(module, "ORDERS_AT_ONCE", 100)
    np.testing.assert_array_equal(tukey_test(values, resamples=200), p)


def test_more_systems_than_are_listed() -> None:
    values = np.random.default_rng(6).random((40, 8, 1)) * 0.3
    values[:, 5] += 0.4
    p = tukey_test(values, resamples=300)[:, :, 0]
    assert (np.delete(p[5], 5) <= 0.01).all()
    assert (np.delete(np.delete(p, 5, axis=0), 5, axis=1) > 0.01).all()


def test_systems_that_never_differ() -> None:
    assert (tukey_test(np.full((9, 3, 1), 0.5), resamples=50) == 1).all()
    assert (tukey_test(np.full((9, 3, 1), NAN), resamples=50) == 1).all()


def test_tukey_ignores_queries_that_do_not_count_and_corrects_for_the_systems() -> None:
    generator = np.random.default_rng(9)
    values = generator.random((120, 4, 2)) + np.array([0.0, 0.02, 0.1, 0.3])[:, None]
    values[7, 2, 0] = NAN
    p = tukey_test(values, resamples=2000)
    np.testing.assert_array_equal(p, p.transpose(1, 0, 2))
    assert ((p > 0) & (p <= 1)).all()
    without = tukey_test(np.delete(values, 7, axis=0), resamples=2000)
    np.testing.assert_allclose(p[:, :, 0], without[:, :, 0], atol=0.05)
    single = randomisation_test(values[:, 0] - values[:, 2], resamples=2000)
    assert (p[0, 2] >= single - 0.01).all()
    # Carterette's point: fewer false alarms than uncorrected tests when all systems are the same.
    same = generator.random((40, 5, 60))
    assert (tukey_test(same, resamples=500).min(axis=(0, 1)) <= 0.05).mean() <= 0.15
