"""Tests for values that are not independent: queries that share a video, and several seeds of one system.

Several queries of a dataset ask about one video, and a hard video makes all of them hard. So a bootstrap draws whole
videos and a randomisation test exchanges them. Training seeds are a second source of variance, besides the queries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.core.moments.captions import CaptionTable
from momentseek.core.moments.judgements import Judgements
from momentseek.measuring.significance import t_quantile, two_sided_p

POWER = 0.8
"""Probability of detecting a true difference of the size that ``smallest_findable`` returns."""


def video_clusters(truth: Judgements | CaptionTable | None) -> IntArray | None:
    """Number each query's video (that of its most relevant moment); None if no two queries share a video.

    >>> truth = Judgements.from_rows([("a", "x", 0, 1, 1), ("b", "y", 0, 1, 1), ("c", "x", 2, 3, 1)])
    >>> video_clusters(truth).tolist()
    [0, 1, 0]
    """
    if truth is None or not len(truth):
        return None
    relevance = truth.relevance if isinstance(truth, Judgements) else np.ones(len(truth.start))
    order = np.lexsort((-relevance, truth.row_query))
    some = truth.counts > 0
    video = len(truth.videos) + np.arange(len(truth))  # queries without a moment stand alone
    video[some] = truth.video[order[truth.offsets[:-1][some]]]
    _, clusters = np.unique(video, return_inverse=True)
    return clusters if clusters.max() + 1 < len(clusters) else None


def cluster_sums(values: FloatArray, clusters: IntArray | None) -> FloatArray:
    """Add up values (queries, …) over the queries of each cluster; NaN counts as 0.

    >>> cluster_sums(np.array([[1.0], [2.0], [np.nan]]), np.array([0, 0, 1])).tolist()
    [[3.0], [0.0]]
    """
    if clusters is None:
        return values
    sums = np.zeros((int(clusters.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(sums, clusters, np.nan_to_num(values))
    return sums


def cluster_variance(values: FloatArray, clusters: IntArray | None) -> float:
    """Return the squared standard error of the mean over queries, with clusters as the independent units.

    >>> twice = np.repeat([0.0, 1.0, 1.0], 2)
    >>> round(cluster_variance(twice, np.repeat(np.arange(3), 2)) / cluster_variance(twice, None), 2)
    2.5
    """
    counted = np.isfinite(values)
    if counted.sum() < 2:
        return math.nan
    rest = np.where(counted, values - values[counted].mean(), np.nan)[:, None]
    there = counted if clusters is None else cluster_sums(counted[:, None].astype(np.float64), clusters)[:, 0] > 0
    count, sums = int(there.sum()), np.nan_to_num(cluster_sums(rest, clusters))
    return float((sums**2).sum()) / int(counted.sum()) ** 2 * count / max(1, count - 1)


class DifferenceTest(NamedTuple):
    """Whether two systems differ: p-value, standard error of their difference, and its degrees of freedom."""

    p: float
    error: float
    freedom: float


def replicated_test(first: FloatArray, second: FloatArray, clusters: IntArray | None) -> DifferenceTest:
    r"""Test the difference between two systems' means; values are (seeds, queries).

    .. math:: t = \bar d / \sqrt{s_v^2 + \max(0, s_A^2 - e_A^2) + \max(0, s_B^2 - e_B^2)}

    with the squared errors over videos of the seeds' mean difference and over each system's seeds; e², the noise of
    single queries and seeds, is in both and must count once. Degrees of freedom by Satterthwaite, from all of these
    (Satterthwaite, Biometrics Bulletin 2, 1946). Queries that do not count for a seed hold NaN and are left out.
    """
    counted = np.isfinite(first).all(axis=0) & np.isfinite(second).all(axis=0)
    if counted.sum() < 2:
        return DifferenceTest(1.0, math.nan, math.nan)
    first, second = first[:, counted], second[:, counted]
    clusters = None if clusters is None else np.unique(clusters[counted], return_inverse=True)[1]
    apart = first.mean(axis=0) - second.mean(axis=0)
    videos = len(apart) if clusters is None else int(clusters.max()) + 1
    whole = cluster_variance(apart, clusters)
    squares = whole**2 / max(1, videos - 1)
    for values in (first, second):
        if (n := len(values)) > 1:
            means = values.mean(axis=1)
            rest = values - values.mean(axis=0) - means[:, None] + means.mean()
            noise = sum(cluster_variance(row, clusters) for row in rest) / (n * (n - 1))
            spread = float(means.var(ddof=1)) / n
            whole += max(0.0, spread - noise)
            squares += (spread**2 + noise**2 / max(1, videos - 1)) / (n - 1)
    difference = float(apart.mean())
    if whole <= 1e-24:
        return DifferenceTest(1.0 if abs(difference) <= 1e-12 else 0.0, 0.0, math.inf)
    freedom = whole**2 / squares
    return DifferenceTest(two_sided_p(difference / math.sqrt(whole), freedom), math.sqrt(whole), freedom)


def smallest_findable(error: float, freedom: float = math.inf, alpha: float = 0.05) -> float:
    """Return the smallest true difference that a test at ``alpha`` detects with a power of 80 %.

    >>> round(smallest_findable(0.01), 3), round(smallest_findable(0.01, freedom=4), 3)
    (0.028, 0.037)
    """
    return error * (t_quantile(alpha, freedom) + t_quantile(2 * (1 - POWER), freedom))


def shared_letters(means: Sequence[float], apart: BoolArray) -> list[str]:
    """Return each system's letters: two systems share one exactly if they are not ``apart`` (systems, systems).

    Piepho, An algorithm for a letter-based representation of all-pairwise comparisons, J. Comp. Graph. Stat. 13 (2004).

    >>> shared_letters([0.9, 0.8, 0.1], np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]], dtype=bool))
    ['a', 'a', 'b']
    """
    order = sorted((i for i in range(len(means)) if not math.isnan(means[i])), key=lambda i: -means[i])
    columns = [set(order)]
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            if apart[i, j]:
                split = [c - {k} for c in columns if {i, j} <= c for k in (i, j)]
                columns = [c for c in columns if not {i, j} <= c]
                for column in split:
                    if not any(column <= other for other in columns):
                        columns = [c for c in columns if not c <= column] + [column]
    columns.sort(key=lambda c: sorted(order.index(i) for i in c))
    return ["".join(chr(97 + n % 26) for n, c in enumerate(columns) if i in c) for i in range(len(means))]
