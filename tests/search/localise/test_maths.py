"""The parts with formulas, against loops and against SciPy."""

import itertools

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are used
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from momentseek.core.moments.arrays import moving_mean
from momentseek.search.localise.contrast import all_contrasts
from momentseek.search.localise.localiser import Background, Curve
from momentseek.search.localise.merge import merge
from momentseek.search.localise.scenes import (
    LAMBDAS,
    comparable_scores,
    fit_background,
    interval_posterior,
    log_likelihoods,
    power_transform,
    straighten,
)
from momentseek.search.localise.tag import kmeans, squared_distances
from momentseek.search.localise.watershed import watershed

curves = arrays(np.float64, st.integers(2, 25), elements=st.floats(-1, 1, width=32))


@given(scores=curves, longest=st.integers(1, 30), extra=st.integers(0, 4))
def test_contrast_equals_the_loop(scores, longest, extra):
    shortest = max(1, longest - extra)
    first, last, value = all_contrasts(scores, longest, shortest)
    expected = {
        (a, b): scores[a:b].mean() - np.concatenate((scores[:a], scores[b:])).mean() if b - a < len(scores) else 0.0
        for a in range(len(scores))
        for b in range(a + min(shortest, len(scores)), min(a + longest, len(scores)) + 1)
    }
    assert dict(zip(zip(first.tolist(), last.tolist(), strict=True), value, strict=True)) == pytest.approx(expected)


@settings(deadline=None, max_examples=16)
@given(seed=st.integers(0, 10_000), size=st.integers(5, 60))
def test_likelihoods_equal_scipys(seed, size):
    x = np.random.default_rng(seed).gamma(2.0, 0.3, size) + 0.05
    ours = log_likelihoods(x)
    theirs = np.array([scipy.stats.boxcox_llf(lam, x) for lam in LAMBDAS])
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6)
    assert theirs[np.argmax(ours)] == pytest.approx(theirs.max(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("lam", [-2.0, -0.5, 0.0, 1.0, 2.0])
def test_transform_equals_scipys(lam):
    x = np.linspace(0.1, 2, 20)
    assert power_transform(x, lam) == pytest.approx(scipy.stats.boxcox(x, lam))


def test_two_levels_are_not_bent():
    x = np.repeat([0.1, 0.3], [30, 10]) + 0.005 * np.random.default_rng(0).normal(size=40)
    assert straighten(x) == pytest.approx((x - x.min()) / np.ptp(x))


def test_straightening_keeps_the_order_and_takes_out_skew():
    x = np.random.default_rng(0).exponential(size=300)
    y = straighten(x)
    assert (np.argsort(y) == np.argsort(x)).all()
    assert abs(scipy.stats.skew(y)) < abs(scipy.stats.skew(x)) / 2
    assert (y.min(), y.max()) == (0.0, 1.0)


@given(seed=st.integers(0, 1000), count=st.integers(1, 6))
def test_posterior_equals_the_sum_over_all_sets(seed, count):
    rng = np.random.default_rng(seed)
    weights = np.full((count + 1, count + 1), -np.inf)
    places = [(a, b) for a in range(count) for b in range(a + 1, count + 1) if rng.random() < 0.8]
    for a, b in places:
        weights[a, b] = rng.normal(0, 2)
    total, mass = 0.0, np.zeros_like(weights)
    for size in range(count + 1):
        for chosen in itertools.combinations(sorted(places), size):
            if all(x[1] < y[0] for x, y in itertools.pairwise(chosen)):
                odds = np.exp(sum(weights[p] for p in chosen))
                total += odds
                for p in chosen:
                    mass[p] += odds
    assert interval_posterior(weights) == pytest.approx(mass / total)


@given(values=arrays(np.float64, (7, 2), elements=st.floats(-5, 5)), width=st.sampled_from([1, 3, 5]))
def test_smoothing_is_the_mean_of_neighbours(values, width):
    half = width // 2
    expected = [values[max(0, i - half) : i + half + 1].mean(0) for i in range(7)]
    assert moving_mean(values, width) == pytest.approx(np.array(expected), abs=1e-9)


def test_kmeans_finds_separate_groups_whatever_the_seed():
    rng = np.random.default_rng(1)
    middles = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = np.concatenate([m + 0.1 * rng.normal(size=(20, 2)) for m in middles])
    for seed in range(5):
        centres = kmeans(points, 3, seed)
        assert squared_distances(middles, centres).min(1).max() < 0.05
    assert len(kmeans(np.ones((5, 2)), 3)) == 1


def test_background_follows_drift_and_not_the_moment():
    drift = np.linspace(0.1, 0.5, 100)
    curve = drift + 0.02 * np.random.default_rng(0).normal(size=100)
    curve[40:55] += 0.5
    level, spread = fit_background(curve)
    assert level[-1] - level[0] > 0.15  # stiff, but it rises
    assert level[40:55].mean() < drift[40:55].mean() + 0.1
    assert 0.01 < spread < 0.15


def test_a_span_stands_by_level_and_by_contrast():
    first, last = np.array([4]), np.array([8])
    low, high, flat = (np.full(12, v) for v in (0.1, 0.2, 0.3))
    low[4:8] = high[4:8] = 0.3
    stand = {n: float(comparable_scores(s, first, last)[0]) for n, s in (("low", low), ("high", high), ("flat", flat))}
    assert stand["flat"] == pytest.approx(0.3)
    weaker = low.copy()
    weaker[4:8] = 0.2
    assert float(comparable_scores(weaker, first, last)[0]) < stand["low"]
    assert float(comparable_scores(low, first, last, 0.1)[0]) < stand["low"]
    whole = np.array([0]), np.array([12])
    assert float(comparable_scores(flat, *whole, level=Background(0.1, 0.05, np.array([0.0, 1.0])))[0]) > 0.3


def test_merging_over_gaps():
    scores = np.full(40, 0.1)
    scores[[5, 6, 7, 10, 11, 12, 30]] = 0.5, 0.5, 0.5, 0.6, 0.5, 0.5, 0.55
    curve = Curve.regular(scores, 1.0, background=Background.of(np.full(10, 0.3)))
    const, adaptive = merge(curve, rule="const"), merge(curve, alpha=0.4)
    assert list(zip(const.start, const.end, strict=True)) == [(10, 13), (30, 31), (5, 8)]
    assert list(zip(adaptive.start, adaptive.end, strict=True)) == [(5, 13), (30, 31)]
    assert adaptive.score.round(2).tolist() == [0.6, 0.55]


def test_islands_on_shots():
    scores = np.array([0.1, 0.1, 0.1, 0.5, 0.1, 0.5, 0.1, 0.1, 0.1, 0.1])
    spans = watershed(Curve.regular(scores, 2.0, shots=[6.0, 12.0]), gap=0)
    assert (float(spans.start[0]), float(spans.end[0])) == (6.0, 12.0)
