"""How label noise moves a measure: in closed form for K = 1 (AxIoU supplement C), by simulation for K > 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from momentseek.moments.arrays import BoolArray, FloatArray

_ERF = np.frompyfunc(math.erf, 1, 1)


DEFAULT_DRAWS = 100
Score = Callable[[FloatArray], FloatArray]
"""Computes a measure's value per query from the best IoU among the first k, given for every query and k."""


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


@dataclass(frozen=True)
class Overlaps:
    """The run's IoUs by query and rank: which ranks hold a prediction, and which of those the noise can reach."""

    iou: FloatArray
    present: BoolArray
    noisy: BoolArray


@dataclass(frozen=True)
class SimulatedErrors:
    """Per query: mean observed minus true value, unbiased variance of the observed one, mean squared error."""

    bias: FloatArray
    variance: FloatArray
    mse: FloatArray


def simulate_noise(
    overlaps: Overlaps,
    scores: Mapping[str, Score],
    gammas: Sequence[float],
    *,
    draws: int = DEFAULT_DRAWS,
    clip: bool = False,
    seed: int = 0,
) -> dict[tuple[str, float], SimulatedErrors]:
    """Add N(0, γ²) to every prediction's IoU, ``draws`` times, and see what becomes of each score.

    The same noise, scaled, serves all γ and scores, so that they can be compared. ``clip`` keeps noisy IoUs within
    [0, 1], which the paper's model does not. Memory holds one draw at a time.

    >>> one = Overlaps(np.array([[0.5]]), np.array([[True]]), np.array([[True]]))
    >>> found = simulate_noise(one, {"AxIoU@1": lambda best: best[:, 0]}, [0.1], draws=4000)["AxIoU@1", 0.1]
    >>> found.variance.round(2).tolist(), bool(abs(found.bias[0]) < 0.005)
    ([0.01], True)
    """
    rng = np.random.default_rng(seed)
    true = {name: score(best_so_far(overlaps.iou, overlaps.present)) for name, score in scores.items()}
    sums = {(name, gamma): np.zeros((2, len(overlaps.iou))) for name in scores for gamma in gammas}
    for _ in range(draws):
        noise = rng.standard_normal(overlaps.iou.shape) * overlaps.noisy
        for gamma in gammas:
            observed = overlaps.iou + gamma * noise
            if clip:
                np.clip(observed, 0, 1, out=observed)
            best = best_so_far(observed, overlaps.present)
            for name, score in scores.items():
                off = score(best) - true[name]
                sums[name, gamma] += off, off**2
    found = {}
    for key, (first, second) in sums.items():
        mean, mse = first / draws, second / draws
        found[key] = SimulatedErrors(mean, np.maximum(0, mse - mean**2) * draws / max(1, draws - 1), mse)
    return found


def best_so_far(iou: FloatArray, present: BoolArray) -> FloatArray:
    """The highest value among the first k of each list, for every k; a list that has ended keeps its best.

    >>> best_so_far(np.array([[0.2, -0.1, 0.0], [0.0, 0.0, 0.0]]), np.array([[1, 1, 0], [0, 0, 0]], bool)).tolist()
    [[0.2, 0.2, 0.2], [0.0, 0.0, 0.0]]
    """
    best: FloatArray = np.maximum.accumulate(np.where(present, iou, -np.inf), axis=1)
    best[np.isneginf(best)] = 0.0
    return best
