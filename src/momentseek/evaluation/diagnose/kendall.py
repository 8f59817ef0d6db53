"""How alike two orders of the same systems are: Kendall's τ, and whether they name the same winner."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from momentseek.moments.arrays import FloatArray


def tau_b(x: ArrayLike, y: ArrayLike) -> float:
    r"""Kendall's τ-b: 1 for the same order, −1 for the reverse; NaN if either side ties everything.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(P - T_x)(P - T_y)}}

    with C concordant and D discordant of the P pairs, T tied ones (Kendall 1945).

    >>> tau_b([0.1, 0.2, 0.3], [1, 2, 3]), tau_b([0.1, 0.2, 0.3], [1, 3, 2])
    (1.0, 0.3333333333333333)
    """
    one, two = _signs(x), _signs(y)
    scale = math.sqrt(np.count_nonzero(one) * np.count_nonzero(two))
    return float(one @ two) / scale if scale else float("nan")


def _signs(values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    i, j = np.triu_indices(len(array), 1)
    signs: FloatArray = np.sign(array[i] - array[j])
    return signs


def stability(scores: FloatArray) -> tuple[float, float]:
    """Of a (judges, systems) table: the mean τ-b over pairs of judges, and how many pairs disagree on the winner.

    Judges who share at least one of their best systems agree.

    >>> stability(np.array([[0.3, 0.2, 0.1], [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]]))
    (-0.3333333333333333, 0.6666666666666666)
    """
    pairs = list(combinations(range(len(scores)), 2))
    taus = np.array([tau_b(scores[i], scores[j]) for i, j in pairs])
    best = scores == scores.max(axis=1, keepdims=True)
    changes = [not (best[i] & best[j]).any() for i, j in pairs]
    known = taus[~np.isnan(taus)]
    return (float(known.mean()) if len(known) else float("nan"), float(np.mean(changes)) if pairs else float("nan"))
