"""How label noise moves a measure of the first prediction, in closed form (AxIoU supplement C)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from momentseek.moments.arrays import FloatArray

_ERF = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True)
class ExactErrors:
    """Per query: expected observed minus true value, and the variance of the observed one."""

    bias: FloatArray
    variance: FloatArray

    @property
    def mse(self) -> FloatArray:
        """Mean squared error: bias² + variance."""
        return self.bias**2 + self.variance


def axiou_errors(r: ArrayLike, gamma: float) -> ExactErrors:
    r"""AxIoU@1 under :math:`\hat r = r + N(0, \gamma^2)`: no bias, variance γ².

    >>> axiou_errors(0.5, 0.1).mse.round(4).tolist()
    0.01
    """
    shape = np.asarray(r, dtype=np.float64).shape
    return ExactErrors(np.zeros(shape), np.full(shape, gamma**2))


def recall_errors(r: ArrayLike, threshold: ArrayLike, gamma: float, strict: bool = False) -> ExactErrors:
    r"""R@1[IoU>=θ] under :math:`\hat r = r + N(0, \gamma^2)`.

    .. math:: bias = P(\hat r \ge \theta) - 1\{r \ge \theta\}, \qquad variance = P(\hat r \ge \theta) P(\hat r < \theta)

    ``strict`` compares the true r with ``>``; for the noisy one it makes no difference.

    >>> errors = recall_errors([0.5, 0.5], [0.5, 0.6], gamma=0.1)
    >>> errors.bias.round(4).tolist(), errors.variance.round(4).tolist()
    ([-0.5, 0.1587], [0.25, 0.1335])
    """
    true, limit = np.asarray(r, dtype=np.float64), np.asarray(threshold, dtype=np.float64)
    passes = normal_cdf((true - limit) / gamma)
    hit = true > limit if strict else true >= limit
    return ExactErrors(passes - hit, passes * (1 - passes))


def normal_cdf(z: ArrayLike) -> FloatArray:
    """The standard normal distribution function.

    >>> normal_cdf([0.0, 1.96]).round(4).tolist()
    [0.5, 0.975]
    """
    erf: FloatArray = np.asarray(_ERF(np.asarray(z, dtype=np.float64) / math.sqrt(2)), dtype=np.float64)
    return (1 + erf) / 2
