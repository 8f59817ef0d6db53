"""Paired significance tests: would two systems differ this much if it did not matter which one answered?

Every function takes one row per query. Where a comparison does not count a query, the row holds NaN.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from itertools import permutations
from statistics import NormalDist

import numpy as np

from momentseek.core.moments.arrays import FloatArray, IntArray

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


def t_quantile(p: float, freedom: float) -> float:
    """The inverse of ``two_sided_p``: the distance from 0 that Student's t reaches with probability ``p``.

    >>> round(t_quantile(0.05, 4), 4), round(t_quantile(0.05, math.inf), 4)
    (2.7764, 1.96)
    """
    if not math.isfinite(freedom):
        return NormalDist().inv_cdf(1 - p / 2) if freedom > 0 else math.nan
    low, high = 0.0, 1.0
    while two_sided_p(high, freedom) > p:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_p(middle, freedom) > p else (low, middle)
    return low


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


TEST_RESAMPLES = 10_000
MAX_EXACT_QUERIES = 14
"""Maximum number of unequal queries for which all sign flips are tried, about as many as are drawn otherwise."""
MAX_TIE_DIFFERENCE = 1e-12
"""Values in 0..1 that differ by at most this are equal: summing in another order changes them by as much."""
SIGNS_AT_ONCE = 1 << 20
"""Number of random signs held in memory at once (8 MB), whatever the number of queries."""
SIGNS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2 - 1
"""Eight signs for each value of a byte."""


def differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return ``first − second`` without rounding noise, so that equal queries give exactly 0.

    >>> differences(np.array([0.1 + 0.2, 0.5]), np.array([0.3, np.nan])).tolist()
    [0.0, nan]
    """
    difference = first - second
    difference[np.abs(difference) <= MAX_TIE_DIFFERENCE] = 0.0
    return difference


def randomisation_test(difference: FloatArray, *, resamples: int = TEST_RESAMPLES, seed: int = 0) -> FloatArray:
    r"""Return two-sided p-values of Fisher's paired randomisation test of each column's mean.

    If both systems are equally good, each query's difference might as well have the other sign.

    .. math:: p = P\left(\left|\sum_q s_q d_q\right| \ge \left|\sum_q d_q\right|\right), \quad s_q = \pm 1

    exactly where few queries differ, else :math:`(c + 1) / (B + 1)` with c of B random flips as extreme.
    Fisher, The Design of Experiments (1935); Smucker, Allan and Carterette, CIKM 2007.

    >>> randomisation_test(np.array([[0.1], [0.2], [0.3], [0.0]])).tolist()  # 2 of 8 flips are as extreme
    [0.25]
    """
    filled = np.nan_to_num(difference)
    unequal = np.count_nonzero(filled, axis=0)
    p = np.ones(filled.shape[1])
    for column in np.flatnonzero((unequal > 0) & (unequal <= MAX_EXACT_QUERIES)):
        p[column] = _all_flips(filled[filled[:, column] != 0, column])
    many = unequal > MAX_EXACT_QUERIES
    if many.any():
        p[many] = _random_flips(filled[:, many], resamples, seed)
    return p


def all_signs(queries: int) -> FloatArray:
    """Return every choice of signs, (flips, queries), with the last query's sign fixed.

    Half of the choices suffice, because flipping all signs does not change the absolute value of a sum.

    >>> all_signs(2).tolist()
    [[1.0, 1.0], [-1.0, 1.0]]
    """
    flips = np.arange(2 ** (queries - 1))
    return (1.0 - 2.0 * (flips[:, None] >> np.arange(queries) & 1)).astype(np.float64)


def random_signs(queries: int, resamples: int = TEST_RESAMPLES, seed: int = 0) -> Iterator[FloatArray]:
    """Yield random signs in chunks (flips, queries) that fit into memory, ``resamples`` flips in total."""
    octets = 4 * -(-queries // 32)  # whole words, so that the chunks do not matter
    generator = np.random.default_rng(seed)
    step = max(1, SIGNS_AT_ONCE // (octets * 8))
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        drawn = np.frombuffer(generator.bytes(rows * octets), np.uint8)
        signs: FloatArray = (
            SIGNS_OF_BYTE.take(drawn, axis=0).reshape(rows, -1)[:, :queries].astype(np.float64, copy=False)
        )
        yield signs


def _all_flips(difference: FloatArray) -> float:
    return float((np.abs(all_signs(len(difference)) @ difference) >= _threshold(difference[:, None])).mean())


def _random_flips(difference: FloatArray, resamples: int, seed: int) -> FloatArray:
    difference = difference[difference.any(axis=1)]
    threshold = _threshold(difference)
    extreme = np.zeros(difference.shape[1])
    for signs in random_signs(len(difference), resamples, seed):
        extreme += (np.abs(signs @ difference) >= threshold).sum(axis=0)
    return (extreme + 1) / (resamples + 1)


def _threshold(difference: FloatArray) -> FloatArray:
    """Return the observed statistic minus a margin for rounding, so that equal sums count as equal."""
    threshold: FloatArray = np.abs(difference.sum(axis=0)) - 1e-10 * np.abs(difference).sum(axis=0)
    return threshold


def paired_t_test(difference: FloatArray) -> FloatArray:
    r"""Return two-sided p-values of Student's paired t-test of each column's mean.

    .. math:: t = \bar d / (s_d / \sqrt n), \quad \nu = n - 1

    >>> paired_t_test(np.array([[0.1], [0.2], [0.3], [0.0]])).round(4).tolist()
    [0.1027]
    """
    counts = np.isfinite(difference).sum(axis=0)
    statistics = effect_size(difference) * np.sqrt(counts)
    return np.array([two_sided_p(t, n - 1) if n > 1 else 1.0 for t, n in zip(statistics, counts.tolist(), strict=True)])


def holm(p_values: FloatArray) -> FloatArray:
    r"""Apply Holm's step-down correction for multiple comparisons.

    .. math:: \tilde p_{(i)} = \min\left(1, \max_{j \le i} (m - j + 1) \, p_{(j)}\right)

    Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statistics 6 (1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(1.0, stepped)
    return corrected


def effect_size(difference: FloatArray) -> FloatArray:
    r"""Return Cohen's d for paired samples, :math:`d_z = \bar d / s_d`, of each column.

    0 if no query differs, infinite if all differ by the same amount, NaN for fewer than two queries.
    Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), section 2.3.5.

    >>> effect_size(np.array([[0.1, 0.0, 0.2], [0.3, 0.0, 0.2]])).round(3).tolist()
    [1.414, 0.0, inf]
    """
    sizes = np.full(difference.shape[1], np.nan)
    for column, sample in enumerate(difference.T):
        counting = sample[np.isfinite(sample)]
        if len(counting) < 2:
            continue
        mean, spread = float(counting.mean()), float(counting.std(ddof=1))
        if spread <= MAX_TIE_DIFFERENCE:
            sizes[column] = math.copysign(math.inf, mean) if abs(mean) > MAX_TIE_DIFFERENCE else 0.0
        else:
            sizes[column] = mean / spread
    return sizes


def outcomes(difference: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """Count the queries won, tied and lost by the first system, for each column.

    >>> [n.tolist() for n in outcomes(np.array([[0.1], [0.0], [-0.2], [0.3], [np.nan]]))]
    [[2], [1], [1]]
    """
    return (difference > 0).sum(axis=0), (difference == 0).sum(axis=0), (difference < 0).sum(axis=0)


MAX_LISTED_SYSTEMS = 6
"""Maximum number of systems whose orders are all listed (6! = 720), which is faster than shuffling."""
ORDERS_AT_ONCE = 1 << 19
"""Number of orders held in memory at once (a few MB), whatever the number of queries."""


def tukey_test(values: FloatArray, *, resamples: int = TEST_RESAMPLES, seed: int = 0) -> FloatArray:
    r"""Return the p-values of the randomised Tukey HSD test, (systems, systems, measures).

    They are already corrected for the number of systems.

    ``values`` is (queries, systems, measures). If all systems are equally good, each query's values might as
    well belong to the systems in any other order:

    .. math:: p_{ij} = P\left(\max_k \bar v^*_k - \min_k \bar v^*_k \ge |\bar v_i - \bar v_j|\right)

    estimated as :math:`(c + 1) / (B + 1)`. Carterette, Multiple testing in statistical analysis of systems-based
    information retrieval experiments, ACM TOIS 30 (2012). With two systems it is the randomisation test.

    >>> scores = np.random.default_rng(1).random((50, 3, 1)) + np.array([0.0, 0.0, 0.3])[:, None]
    >>> tukey_test(scores, resamples=999)[:, :, 0].round(1).tolist()
    [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    _, systems, measures = values.shape
    counting = np.isfinite(values).all(axis=1, keepdims=True)
    centred = np.where(counting, values - values.mean(axis=1, keepdims=True), 0.0)
    p = np.ones((systems, systems, measures))
    if systems == 2:
        pair = differences(centred[:, 0], centred[:, 1])
        p[0, 1] = p[1, 0] = randomisation_test(pair, resamples=resamples, seed=seed)
        return p
    totals = centred.sum(axis=0)
    slack = 1e-10 * np.ptp(centred, axis=1).sum(axis=0)  # equal ranges must count as equal despite rounding
    draw = ranges_by_listing if systems <= MAX_LISTED_SYSTEMS else ranges_by_shuffling
    ranges = draw(centred, resamples, np.random.default_rng(seed))
    for i in range(systems):
        for j in range(systems):
            if i != j:
                extreme = (ranges >= np.abs(totals[i] - totals[j]) - slack).sum(axis=0)
                p[i, j] = (extreme + 1) / (resamples + 1)
    return p


def ranges_by_listing(values: FloatArray, resamples: int, generator: np.random.Generator) -> FloatArray:
    """Return the range of the systems' totals in each resample, with each query's values in a random order.

    The result has the shape (resamples, measures): the largest total less the smallest.

    The total at position s is the sum over systems of (queries whose order puts the system at position s) × values,
    a product of matrices. One system and one position follow from the rest, because the values are centred.
    """
    queries, systems, measures = values.shape
    orders = np.array(list(permutations(range(systems))), dtype=np.uint8)
    ranges = np.empty((resamples, measures))
    step = max(1, ORDERS_AT_ONCE // max(1, queries))
    last = values[:, -1]
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        chosen = generator.integers(0, len(orders), size=(rows, queries), dtype=np.int32).astype(np.intp)
        totals = np.empty((systems, rows, measures))
        for position in range(systems - 1):
            totals[position] = last.sum(axis=0)
            for system in range(systems - 1):
                here = (orders[:, position] == system).astype(np.float64).take(chosen)
                totals[position] += here @ (values[:, system] - last)
        totals[-1] = -totals[:-1].sum(axis=0)
        ranges[first : first + rows] = np.ptp(totals, axis=0)
    return ranges


def ranges_by_shuffling(values: FloatArray, resamples: int, generator: np.random.Generator) -> FloatArray:
    """Compute the same as :func:`ranges_by_listing`, for any number of systems, one resample at a time."""
    queries, systems, measures = values.shape
    flat = values.reshape(queries * systems, measures)
    order = np.arange(queries * systems).reshape(queries, systems)
    ranges = np.empty((resamples, measures))
    for row in range(resamples):
        shuffled = flat.take(generator.permuted(order, axis=1).ravel(), axis=0)
        ranges[row] = np.ptp(shuffled.reshape(queries, -1).sum(axis=0).reshape(systems, measures), axis=0)
    return ranges
