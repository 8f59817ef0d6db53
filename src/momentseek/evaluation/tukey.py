"""Randomised Tukey HSD: every two of several systems at once, without raising too many false alarms."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from momentseek.evaluation.significance import TEST_RESAMPLES, differences, randomisation_test
from momentseek.moments.arrays import FloatArray

MAX_LISTED_SYSTEMS = 6
"""Up to this many systems all their orders are listed (6! = 720), which is quicker than shuffling."""
ORDERS_AT_ONCE = 1 << 19
"""Orders held at once; a few MB, whatever the number of queries."""


def tukey_test(values: FloatArray, *, resamples: int = TEST_RESAMPLES, seed: int = 0) -> FloatArray:
    r"""p-values, corrected for the number of systems, as (systems, systems, measures).

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
    """The range of the systems' totals in each resample, where each query's values are in a random order.

    The result has the shape (resamples, measures): the largest total less the smallest.

    The total in place s is the sum over systems of (queries whose order puts the system in place s) × values,
    a product of matrices. One system and one place follow from the rest, because the values are centred.
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
        for place in range(systems - 1):
            totals[place] = last.sum(axis=0)
            for system in range(systems - 1):
                here = (orders[:, place] == system).astype(np.float64).take(chosen)
                totals[place] += here @ (values[:, system] - last)
        totals[-1] = -totals[:-1].sum(axis=0)
        ranges[first : first + rows] = np.ptp(totals, axis=0)
    return ranges


def ranges_by_shuffling(values: FloatArray, resamples: int, generator: np.random.Generator) -> FloatArray:
    """What :func:`ranges_by_listing` computes, for any number of systems, one resample after the other."""
    queries, systems, measures = values.shape
    flat = values.reshape(queries * systems, measures)
    order = np.arange(queries * systems).reshape(queries, systems)
    ranges = np.empty((resamples, measures))
    for row in range(resamples):
        shuffled = flat.take(generator.permuted(order, axis=1).ravel(), axis=0)
        ranges[row] = np.ptp(shuffled.reshape(queries, -1).sum(axis=0).reshape(systems, measures), axis=0)
    return ranges
