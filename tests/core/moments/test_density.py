"""Kernel densities, compared with scipy and with plain sums."""

from __future__ import annotations

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are used
from hypothesis import given
from hypothesis import strategies as st

from momentseek.benchmarks import density
from momentseek.benchmarks.density import kernel_sums, sparsest_points, whiten
from momentseek.core.errors import MomentseekError


def plain(points, at, bandwidth):
    apart = ((np.asarray(at)[:, None] - np.asarray(points)[None]) ** 2).sum(axis=2)
    return np.exp(-apart / (2 * bandwidth**2)).sum(axis=1)


@pytest.fixture
def clumped(request):
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.random((300, 2)), rng.normal(0.1, 0.005, (200, 2)), np.tile([0.0, 1.0], (80, 1))])
    return rng.permutation(points)


@pytest.mark.parametrize("bandwidth", [0.001, 0.01, 0.05, 0.5, 20.0])
def test_sums_equal_the_plain_ones(clumped, bandwidth):
    missing = len(clumped) * np.exp(-(density.CUTOFF_BANDWIDTHS**2) / 2)
    sums, full = kernel_sums(clumped, clumped, bandwidth), plain(clumped, clumped, bandwidth)
    assert np.all(sums <= full * (1 + 1e-12))
    assert np.all(full - sums <= missing)
    assert kernel_sums(clumped, clumped, bandwidth, radius=np.inf) == pytest.approx(full, rel=1e-12)


def test_sums_at_other_places_near_and_far(clumped):
    at = np.array([[0.1, 0.1], [-0.03, 0.5], [1.02, 1.02], [-5.0, 5.0], [1e6, -1e6], [0.0, 1.0]])
    assert kernel_sums(clumped, at, 0.02) == pytest.approx(plain(clumped, at, 0.02), abs=1e-5)
    assert kernel_sums(clumped, at, 0.02)[4] == 0
    assert kernel_sums(clumped, np.empty((0, 2)), 0.02).tolist() == []


def test_result_does_not_depend_on_tiles(clumped, monkeypatch):
    whole = kernel_sums(clumped, clumped, 0.05)
    monkeypatch.setattr(density, "KERNEL_VALUES_AT_ONCE", 7)
    assert kernel_sums(clumped, clumped, 0.05) == pytest.approx(whole, rel=1e-12)


def test_scotts_rule_is_scipys(clumped):
    plane, bandwidth = whiten(clumped)
    ours = kernel_sums(plane, plane, bandwidth, radius=np.inf)
    kde = scipy.stats.gaussian_kde(clumped.T)
    assert bandwidth == pytest.approx(kde.factor)
    theirs = kde(clumped.T)
    assert ours / ours.sum() == pytest.approx(theirs / theirs.sum(), rel=1e-9)
    assert ours / (len(plane) * 2 * np.pi * np.sqrt(np.linalg.det(kde.covariance))) == pytest.approx(theirs, rel=1e-9)


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=60),
    st.floats(0.01, 3.0),
    st.data(),
)
def test_lowest_equal_those_of_the_full_sum(grid, bandwidth, more):
    points = np.array(grid, dtype=float) / 4
    k = more.draw(st.integers(1, len(points) - 1))
    found = sparsest_points(points, k, bandwidth)
    full = plain(points, points, bandwidth)
    assert found.chosen.sum() == k
    assert full[found.chosen].max() <= full[~found.chosen].min() * (1 + 1e-9)
    if found.tied:
        assert found.gap == 0
        level = full[found.chosen].max()
        equal = np.flatnonzero(np.isclose(full, level, rtol=1e-11, atol=0))
        inside = found.chosen[equal]
        assert inside.tolist() == sorted(inside.tolist(), reverse=True)  # the first in order are taken


def test_lowest_where_the_cut_off_sums_would_err(monkeypatch):
    # With a radius of 1 bandwidth every sum is 1 or 2 and says nothing; the full sums decide.
    points = np.array([[x, 0.0] for x in (0.0, 1.5, 2.9, 4.2, 20.0, 21.4)])
    expected = np.argsort(plain(points, points, 1.0), kind="stable")
    monkeypatch.setattr(density, "CUTOFF_BANDWIDTHS", 1.0)
    for k in (1, 3):
        assert set(np.flatnonzero(sparsest_points(points, k, 1.0).chosen)) == set(expected[:k])


def test_duplicates_count_fully():
    points = [[0.2, 0.4]] * 5 + [[0.7, 0.9]] * 2
    assert kernel_sums(points, points, 0.01).tolist() == pytest.approx([5.0] * 5 + [2.0] * 2)
    found = sparsest_points(points, 1, 0.01)
    assert (found.chosen.tolist().index(True), found.tied, found.gap) == (5, 2, 0.0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: kernel_sums([[0, 0]], [[0, 0]], 0.0), "bandwidth of a density must be positive, not 0"),
        (lambda: kernel_sums([[0, np.nan]], [[0, 0]], 1.0), "finite"),
        (lambda: kernel_sums([[0, 0], [1e200, 0]], [[0, 0]], 0.1), "wrong times"),
        (lambda: sparsest_points([[0, 0]], 1, 1.0), "1 of 1 points cannot be set apart"),
        (lambda: whiten([[0, 0], [1, 1], [2, 2]]), "on one line"),
        (lambda: whiten([[0, 0]]), "on one line"),
    ],
)
def test_refusals(call, sentence):
    with pytest.raises(MomentseekError, match=sentence):
        call()
