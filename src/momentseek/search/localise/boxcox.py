"""Box–Cox: the power transform that makes a sample as normal as it can; it undoes the skew of cosines."""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray

LAMBDAS: FloatArray = np.linspace(-2.0, 2.0, 41)
SMALL = 1e-8


def likelihoods(x: FloatArray, lambdas: FloatArray = LAMBDAS) -> FloatArray:
    r"""Profile log-likelihood of each λ for a positive sample (Box and Cox 1964).

    .. math:: \ell(\lambda) = (\lambda - 1) \sum_i \ln x_i - \frac n2 \ln \operatorname{var}(x^{(\lambda)})

    >>> skewed = np.exp(np.linspace(-2, 2, 50))
    >>> LAMBDAS[np.argmax(likelihoods(skewed))].round(6)  # logarithm of an exponential
    np.float64(0.0)
    """
    logs = np.log(x)
    powers = np.exp(lambdas[:, None] * logs)  # the constants −1 and, for λ ≠ 0, 1/λ do not touch the shape
    plain = np.abs(lambdas) < SMALL
    powers[plain] = logs
    scale = np.where(plain, 1.0, lambdas)
    variance = powers.var(axis=1) / scale**2
    result: FloatArray = (lambdas - 1) * logs.sum() - len(x) / 2 * np.log(np.maximum(variance, np.finfo(float).tiny))
    return result


def transformed(x: FloatArray, lam: float) -> FloatArray:
    """(x^λ − 1) / λ, the logarithm at λ = 0."""
    return np.log(x) if abs(lam) < SMALL else (x**lam - 1) / lam


def straightened(scores: FloatArray, floor: float = 0.25) -> FloatArray:
    """Scores with their skew taken out, scaled to 0 … 1; a constant curve becomes zeros.

    Box–Cox needs positive values and cosines have no natural zero, so the lowest score is put at ``floor`` times the
    range; the result thus does not change when a constant is added to the scores or when they are multiplied.
    λ is the likeliest of :data:`LAMBDAS`.

    >>> straightened(np.array([0.2, 0.21, 0.22, 0.3])).round(2).tolist()
    [0.0, 0.34, 0.54, 1.0]
    """
    low, high = float(scores.min()), float(scores.max())
    if high - low <= 1e-6 * max(abs(low), abs(high), 1e-6):
        return np.zeros(len(scores))
    x = (scores - low) / (high - low) + floor
    y = transformed(x, float(LAMBDAS[np.argmax(likelihoods(x))]))
    result: FloatArray = (y - y.min()) / (y.max() - y.min())
    return result
