"""Kappa and alpha against published and hand-computed values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentseek.benchmarks.datasets.annotation.agreement import alpha, couples, kappa, measure_agreement
from momentseek.benchmarks.datasets.annotation.labels import group_labels

# Krippendorff (2011), example C: four observers, twelve units, some labels missing. His levels are 1 to 5.
OBSERVERS = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]


def krippendorff():
    return group_labels([(u, o, int(c) - 1) for o, row in enumerate(OBSERVERS) for u, c in enumerate(row) if c != "."])


@pytest.mark.parametrize(("scale", "value"), [("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_krippendorffs_example(scale, value):
    assert alpha(krippendorff(), scale) == pytest.approx(value, abs=5e-4)


def test_alpha_by_its_definition():
    rng = np.random.default_rng(3)
    pairs = [rng.integers(0, 5, size=rng.integers(1, 5)).tolist() for _ in range(60)]
    labels = group_labels([(u, w, r) for u, judged in enumerate(pairs) for w, r in enumerate(judged)])
    units = [p for p in pairs if len(p) > 1]
    everything = [r for p in units for r in p]
    n = len(everything)
    observed = sum((a - b) ** 2 / (len(p) - 1) for p in units for a in p for b in p) / n
    expected = sum((a - b) ** 2 for a in everything for b in everything) / (n * (n - 1))
    assert alpha(labels, "interval") == pytest.approx(1 - observed / expected)


def test_kappa_of_cohens_kind():
    # 35 of 50 agree; by chance 25 do.
    assert kappa([[20, 5], [10, 15]]) == pytest.approx((35 / 50 - 0.5) / 0.5)
    assert kappa([[10, 0], [0, 5]]) == 1
    assert math.isnan(kappa([[10, 0], [0, 0]]))


@given(st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=5, max_size=5))
def test_quadratic_kappa_is_one_minus_a_ratio_of_squares(table):
    counts = np.array(table, dtype=float)
    a, b = np.indices(counts.shape)
    expected = np.outer(counts.sum(1), counts.sum(0))
    bottom = ((a - b) ** 2 * expected).sum()
    if bottom:
        value = 1 - counts.sum() * ((a - b) ** 2 * counts).sum() / bottom
        assert kappa(table, "quadratic") == pytest.approx(value, abs=1e-12)


def test_couples_need_enough_pairs_and_ignore_repeats():
    rows = [(p, w, p % 5) for p in range(40) for w in "xy"]
    rows += [(p, "z", 0) for p in range(29)] + [(0, "x", 4)]
    found = measure_agreement(group_labels(rows))
    assert [(c.first, c.second, c.pairs, c.kappa) for c in found.workers] == [("x", "y", 40, 1.0)]
    assert (found.pairs, found.same, found.mean_kappa) == (40, 1.0, 1.0)


def test_couples_sum_every_two_labels_once():
    rng = np.random.default_rng(1)
    rows = [(p, w, int(rng.integers(5))) for p in range(50) for w in rng.permutation(6)[:4].tolist()]
    labels = group_labels(rows)
    found = couples(labels, 1)
    assert sum(c.pairs for c in found) == 50 * 6
    some = found[0]
    by = {(p, str(w)): r for p, w, r in rows}
    shared = [p for p in range(50) if (p, some.first) in by and (p, some.second) in by]
    assert some.pairs == len(shared)
    assert some.same == pytest.approx(np.mean([by[p, some.first] == by[p, some.second] for p in shared]))


def test_one_pair_only_has_no_chance_to_compare_with():
    found = measure_agreement(group_labels([("a", "w", 2), ("a", "v", 2)]))
    assert math.isnan(found.kappa)
    assert math.isnan(found.alpha_ordinal)
    assert math.isnan(found.mean_kappa)


def test_nobody_in_common():
    assert measure_agreement(group_labels([("a", "w", 2), ("b", "v", 2)])).pairs == 0
