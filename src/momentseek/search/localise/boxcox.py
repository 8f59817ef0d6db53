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


def split(x: FloatArray) -> float:
    """Share of the variance that lies between the two groups into which a threshold parts the sample best (Otsu 1979).

    About 0.64 for a normal sample, 1 for two values.

    >>> round(split(np.array([0.0, 0.0, 1.0])), 2), round(split(np.linspace(0, 1, 100)), 2)
    (1.0, 0.75)
    """
    ordered = np.sort(x)
    sums = np.cumsum(ordered)
    low = np.arange(1, len(x))
    high = len(x) - low
    step = (sums[-1] - sums[:-1]) / high - sums[:-1] / low
    return float((low * high * step**2).max() / len(x) / ((x - x.mean()) ** 2).sum())


def straightened(scores: FloatArray, two: float = 0.9, floor: float = 0.25) -> FloatArray:
    """Scores with their skew taken out, scaled to 0 … 1; a constant curve becomes zeros.

    Box–Cox needs positive values and cosines have no natural zero, so the lowest score is put at ``floor`` times the
    range; the result thus does not change when a constant is added to the scores or when they are multiplied.
    λ is the likeliest of :data:`LAMBDAS`. A curve of two clear levels (:func:`split` above ``two``) is only scaled:
    it is far from normal because it holds a moment, and bending it would spread the low level's noise over the range.

    >>> straightened(np.array([0.2, 0.21, 0.22, 0.24, 0.3])).round(2).tolist()
    [0.0, 0.28, 0.46, 0.69, 1.0]
    """
    low, high = float(scores.min()), float(scores.max())
    if high - low <= 1e-6 * max(abs(low), abs(high), 1e-6):
        return np.zeros(len(scores))
    x = (scores - low) / (high - low)
    if split(x) <= two:
        x = transformed(x + floor, float(LAMBDAS[np.argmax(likelihoods(x + floor))]))
    result: FloatArray = (x - x.min()) / (x.max() - x.min())
    return result
