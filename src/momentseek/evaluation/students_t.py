"""Student's t distribution, without the second that importing a statistics library takes."""

from __future__ import annotations

import math
import sys

MIN_P_VALUE = sys.float_info.min
"""Reported instead of a p-value that underflows: a p-value is never 0."""


def two_sided_p(t: float, freedom: float) -> float:
    r"""Probability that Student's t with ``freedom`` degrees of freedom is at least as far from 0 as ``t``.

    .. math:: p = I_x(\nu/2, 1/2), \quad x = \nu / (\nu + t^2)

    with the regularised incomplete beta function I (NIST Digital Library of Mathematical Functions, 8.17).

    >>> round(two_sided_p(2.0, 10), 6), two_sided_p(0.0, 5), two_sided_p(math.inf, 5)
    (0.073388, 1.0, 2.2250738585072014e-308)
    """
    square = t * t
    if square == 0:
        return 1.0
    if math.isinf(square):
        return MIN_P_VALUE
    a = freedom / 2
    x, y = freedom / (freedom + square), square / (freedom + square)
    # x^a √y / B(a, 1/2), with B(a, 1/2) = Γ(a) √π / Γ(a + 1/2)
    power = math.exp(-a * math.log1p(square / freedom)) * math.sqrt(y / math.pi) * gamma_ratio(a)
    central = x > (a + 1) / (a + 2.5)  # where the fraction converges quickly for 1 − I instead
    p = 1 - power / _fraction(0.5, a, y, x) if central else power / _fraction(a, 0.5, x, y)
    return min(1.0, max(p, MIN_P_VALUE))


def gamma_ratio(a: float) -> float:
    r"""Γ(a + 1/2) / Γ(a), also where both overflow.

    For large a a series in :math:`w = a - 1/4` (DLMF 5.11.14), whose next term is below 1e-15.

    >>> round(gamma_ratio(1.0) ** 2 * 4 / math.pi, 12), round(gamma_ratio(1e6), 6)
    (1.0, 999.999875)
    """
    if a < 25:
        return math.gamma(a + 0.5) / math.gamma(a)
    w = a - 0.25
    u = 1 / (w * w)
    return math.sqrt(w) * (1 + u * (1 / 64 + u * (-19 / 8192 + u * (631 / 524288 - u * 174317 / 134217728))))


def _fraction(a: float, b: float, x: float, y: float) -> float:
    """The even part of the continued fraction of DLMF 8.17.22, by Lentz's forward method; ``y`` is 1 − x.

    Written as DiDonato and Morris do (ACM TOMS 18, 1992, algorithm 708): a·y − b·x loses nothing when a is large.
    """
    value = c = _denominator(0, a, b, x, y)
    d = 0.0
    for m in range(1, 10_000):
        numerator = (a + m - 1) * (a + b + m - 1) * m * (b - m) * x * x / (a + 2 * m - 1) ** 2
        denominator = _denominator(m, a, b, x, y)
        d = 1 / (denominator + numerator * d)
        c = denominator + numerator / c
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _denominator(m: int, a: float, b: float, x: float, y: float) -> float:
    head = m + m * (b - m) * x / (a + 2 * m - 1) if m else 0.0
    return head + (a + m) * (a * y - b * x + 1 + m * (1 + y)) / (a + 2 * m + 1)
