"""Box–Cox: the power transform that makes a sample as normal as it can; it undoes the skew of cosines."""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray

LAMBDAS: FloatArray = np.linspace(-2.0, 2.0, 41)
"""Powers that are tried."""
SMALLEST_LAMBDA = 1e-8
"""λ nearer to 0 than this counts as 0: the transform is then the logarithm."""


def log_likelihoods(x: FloatArray, lambdas: FloatArray = LAMBDAS) -> FloatArray:
    r"""Profile log-likelihood of each λ for a positive sample (Box and Cox 1964).

    .. math:: \ell(\lambda) = (\lambda - 1) \sum_i \ln x_i - \frac n2 \ln \operatorname{var}(x^{(\lambda)})

    >>> skewed = np.exp(np.linspace(-2, 2, 50))
    >>> LAMBDAS[np.argmax(log_likelihoods(skewed))].round(6)  # logarithm of an exponential
    np.float64(0.0)
    """
    logs = np.log(x)
    powers = np.exp(lambdas[:, None] * logs)  # the constants −1 and, for λ ≠ 0, 1/λ do not touch the shape
    plain = np.abs(lambdas) < SMALLEST_LAMBDA
    powers[plain] = logs
    scale = np.where(plain, 1.0, lambdas)
    variance = powers.var(axis=1) / scale**2
    result: FloatArray = (lambdas - 1) * logs.sum() - len(x) / 2 * np.log(np.maximum(variance, np.finfo(float).tiny))
    return result


def power_transform(x: FloatArray, lam: float) -> FloatArray:
    """The Box–Cox transform of a positive sample: (x^λ − 1) / λ, and the logarithm at λ = 0."""
    return np.log(x) if abs(lam) < SMALLEST_LAMBDA else (x**lam - 1) / lam


def two_level_share(x: FloatArray) -> float:
    """Share of a sample's variance that lies between the two groups that a threshold separates best (Otsu 1979).

    About 0.64 for a normal sample, 1 for two values.

    >>> round(two_level_share(np.array([0.0, 0.0, 1.0])), 2), round(two_level_share(np.linspace(0, 1, 100)), 2)
    (1.0, 0.75)
    """
    ordered = np.sort(x)
    sums = np.cumsum(ordered)
    low = np.arange(1, len(x))
    high = len(x) - low
    step = (sums[-1] - sums[:-1]) / high - sums[:-1] / low
    return float((low * high * step**2).max() / len(x) / ((x - x.mean()) ** 2).sum())


def straighten(scores: FloatArray, two_levels: float = 0.9, floor: float = 0.25) -> FloatArray:
    """Take the skew out of scores and scale them to 0 … 1; a constant curve becomes zeros.

    Box–Cox needs positive values and cosines have no natural zero, so the lowest score is put at ``floor`` times the
    range; the result thus does not change when a constant is added to the scores or when they are multiplied.
    λ is the likeliest of :data:`LAMBDAS`. A curve of two clear levels (:func:`two_level_share` above
    ``two_levels``) is only scaled: it is far from normal because it holds a moment, and bending it would spread the low
    level's noise over the range.

    >>> straighten(np.array([0.2, 0.21, 0.22, 0.24, 0.3])).round(2).tolist()
    [0.0, 0.28, 0.46, 0.69, 1.0]
    """
    low, high = float(scores.min()), float(scores.max())
    if high - low <= 1e-6 * max(abs(low), abs(high), 1e-6):
        return np.zeros(len(scores))
    x = (scores - low) / (high - low)
    if two_level_share(x) <= two_levels:
        x = power_transform(x + floor, float(LAMBDAS[np.argmax(log_likelihoods(x + floor))]))
    result: FloatArray = (x - x.min()) / (x.max() - x.min())
    return result
