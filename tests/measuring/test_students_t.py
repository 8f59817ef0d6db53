from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy  # whose parts are loaded when they are used

from momentseek.measuring.significance import MIN_P_VALUE, gamma_ratio, two_sided_p

FREEDOM = [1, 2, 3, 4, 5, 7, 10, 20, 49, 50, 51, 100, 599, 2780, 10_000, 99_999, 1e6, 1e8]
STATISTICS = [0.01, 0.1, 0.5, 1, 1.5, 1.7, 1.73, 1.75, 1.8, 2, 3, 5, 8, 12, 20, 35]


@pytest.mark.parametrize("freedom", FREEDOM)
def test_agrees_with_scipy_from_one_to_the_tiniest(freedom: float) -> None:
    for t in STATISTICS:
        expected = 2 * scipy.stats.t.sf(t, freedom)
        assert two_sided_p(t, freedom) == pytest.approx(expected, rel=1e-12), t


def test_known_values_that_have_a_closed_form() -> None:
    # One degree of freedom: Cauchy, p = 1 - 2 arctan(t) / π. Two: p = 1 - t / sqrt(2 + t²).
    for t in (1e-8, 0.3, 1.0, 4.0, 100.0):
        assert two_sided_p(t, 1) == pytest.approx(2 / math.pi * math.atan(1 / t), rel=1e-14)
        assert two_sided_p(t, 2) == pytest.approx(2 / ((2 + t * t) * (1 + t / math.sqrt(2 + t * t))), rel=1e-13)


def test_symmetric_monotone_and_never_zero() -> None:
    grid = np.linspace(0, 60, 400)
    p = [two_sided_p(t, 30) for t in grid]
    assert all(np.diff(p) < 0)
    assert [two_sided_p(-t, 30) for t in grid] == p
    assert two_sided_p(0.0, 30) == 1.0
    assert two_sided_p(math.inf, 30) == two_sided_p(1e200, 30) == two_sided_p(1e5, 2000) == MIN_P_VALUE


@pytest.mark.parametrize("a", [1, 2, 24, 25, 26, 300, 5000])
def test_gamma_ratio(a: int) -> None:
    # For whole a: Γ(a + 1/2) / Γ(a) = √π a C(2a, a) / 4^a.
    assert gamma_ratio(a) == pytest.approx(math.sqrt(math.pi) * Fraction(a * math.comb(2 * a, a), 4**a), rel=1e-14)
