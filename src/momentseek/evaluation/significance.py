"""Paired significance tests: would two systems differ this much if it did not matter which one answered?

Every function takes one row per query. Where a comparison does not count a query, the row holds NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from momentseek.evaluation.students_t import two_sided_p
from momentseek.moments.arrays import FloatArray, IntArray

TEST_RESAMPLES = 10_000
MAX_EXACT_QUERIES = 14
"""Up to this many unequal queries all sign flips are tried; 2 ** 14 is as many as are drawn otherwise."""
MAX_TIE_DIFFERENCE = 1e-12
"""Two values in 0..1 that differ by no more are equal: sums in another order differ by that much."""
SIGNS_AT_ONCE = 1 << 20
"""Random signs held at once; 8 MB, whatever the number of queries."""
SIGNS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2 - 1
"""Eight signs for each value of a byte."""


def differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """``first − second`` with rounding noise removed, so that equal queries are exactly 0.

    >>> differences(np.array([0.1 + 0.2, 0.5]), np.array([0.3, np.nan])).tolist()
    [0.0, nan]
    """
    difference = first - second
    difference[np.abs(difference) <= MAX_TIE_DIFFERENCE] = 0.0
    return difference


def randomisation_test(difference: FloatArray, *, resamples: int = TEST_RESAMPLES, seed: int = 0) -> FloatArray:
    r"""Fisher's paired randomisation test of each column's mean: two-sided p-values.

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
    """(flips, queries): every choice of signs but the last query's: flipping all changes no absolute value.

    >>> all_signs(2).tolist()
    [[1.0, 1.0], [-1.0, 1.0]]
    """
    flips = np.arange(2 ** (queries - 1))
    return (1.0 - 2.0 * (flips[:, None] >> np.arange(queries) & 1)).astype(np.float64)


def random_signs(queries: int, resamples: int = TEST_RESAMPLES, seed: int = 0) -> Iterator[FloatArray]:
    """Random signs, (flips, queries), as many flips at once as fit, and ``resamples`` in all."""
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
    """The observed statistic, less what summing in another order can change: equal sums must count as equal."""
    threshold: FloatArray = np.abs(difference.sum(axis=0)) - 1e-10 * np.abs(difference).sum(axis=0)
    return threshold


def paired_t_test(difference: FloatArray) -> FloatArray:
    r"""Student's paired t-test of each column's mean: two-sided p-values.

    .. math:: t = \bar d / (s_d / \sqrt n), \quad \nu = n - 1

    >>> paired_t_test(np.array([[0.1], [0.2], [0.3], [0.0]])).round(4).tolist()
    [0.1027]
    """
    counts = np.isfinite(difference).sum(axis=0)
    statistics = effect_size(difference) * np.sqrt(counts)
    return np.array([two_sided_p(t, n - 1) if n > 1 else 1.0 for t, n in zip(statistics, counts.tolist(), strict=True)])


def holm(p_values: FloatArray) -> FloatArray:
    r"""Holm's step-down correction for making several comparisons at once.

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
    r"""Cohen's d for paired samples, :math:`d_z = \bar d / s_d`, of each column.

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
    """Queries won, tied and lost by the first system, for each column.

    >>> [n.tolist() for n in outcomes(np.array([[0.1], [0.0], [-0.2], [0.3], [np.nan]]))]
    [[2], [1], [1]]
    """
    return (difference > 0).sum(axis=0), (difference == 0).sum(axis=0), (difference < 0).sum(axis=0)
