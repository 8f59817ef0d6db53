"""Bootstrap intervals: how much a mean over queries varies with the sample of queries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import BoolArray, FloatArray, IntArray
from momentseek.measuring.measures import CaptionMeasure
from momentseek.measuring.replicates import cluster_sums, video_clusters
from momentseek.measuring.result import Evaluation
from momentseek.measuring.significance import MAX_EXACT_QUERIES, TEST_RESAMPLES, all_signs, random_signs

BOOTSTRAP_RESAMPLES = 2000
CHANCE_RESAMPLES = 20
"""Number of draws whose mean estimates what chance alone gives; too few for an interval."""
CONFIDENCE_LEVEL = 0.95
"""Confidence level of the intervals."""
DRAWS_AT_ONCE = 1 << 20
"""Number of draws held in memory at once (about 20 MB), whatever the number of queries."""


def bootstrap_interval(
    values: FloatArray,
    *,
    clusters: IntArray | None = None,
    level: float = CONFIDENCE_LEVEL,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the percentile interval of each column's mean, drawing rows or whole ``clusters``.

    ``values`` is (queries, measures); NaN means that the query does not count for that measure. Efron and
    Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.

    >>> low, high = bootstrap_interval(np.array([[0.0, 0.5], [1.0, 0.5]] * 50))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.4, 0.5], [0.6, 0.5])
    """
    return percentiles(bootstrap_means(values, clusters=clusters, resamples=resamples, seed=seed), level)


def bootstrap_means(
    values: FloatArray, *, clusters: IntArray | None = None, resamples: int = BOOTSTRAP_RESAMPLES, seed: int = 0
) -> FloatArray:
    """Return each measure's mean over queries drawn with replacement, (resamples, measures).

    ``clusters`` numbers each query's group, such as its video: then whole groups are drawn. A resample in which no
    query counts for a measure gives NaN. All measures use the same draws, so that the difference of two columns is the
    resampled difference, provided that their NaNs agree.

    >>> bootstrap_means(np.array([[0.25], [0.25], [np.nan]]), resamples=3).ravel().tolist()
    [0.25, 0.25, 0.25]
    """
    if resamples < 1:
        raise MomentseekError(f"{resamples} resamples are too few for an interval; ask for at least 1")
    known = np.isfinite(values)
    some_missing = not known.all() or clusters is not None
    filled = cluster_sums(np.where(known, values, 0.0), clusters)
    counting = cluster_sums(known.astype(np.float64), clusters)
    queries, measures = filled.shape
    means = np.full((resamples, measures), np.nan)
    if queries == 0:
        return means
    generator = np.random.default_rng(seed)
    step = max(1, DRAWS_AT_ONCE // queries)
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        # Each row draws queries; the row's number times `queries` keeps the rows apart in one bincount.
        draws = generator.integers(0, queries, size=(rows, queries), dtype=np.int32).astype(np.int64)
        draws += np.arange(rows, dtype=np.int64)[:, None] * queries
        counts = np.bincount(draws.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.float64)
        total = counts @ filled
        size = counts @ counting if some_missing else np.full_like(total, queries)
        np.divide(total, size, out=means[first : first + rows], where=size > 0)
    return means


def percentiles(means: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the middle ``level`` of each column of resampled means; NaN for a column without any.

    >>> low, high = percentiles(np.linspace(0, 1, 101)[:, None], 0.9)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.05], [0.95])
    """
    if not 0 < level < 1:
        raise MomentseekError(f"a confidence level of {level:g} is impossible; choose one between 0 and 1")
    tails = [(1 - level) / 2, (1 + level) / 2]
    ends = np.full((2, means.shape[1]), np.nan)
    for column, sample in enumerate(means.T):
        usable = sample[np.isfinite(sample)]
        if len(usable):
            ends[:, column] = np.quantile(usable, tails)
    return ends[0], ends[1]


def figure_intervals(result: Evaluation, some: BoolArray, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the 95 % bootstrap interval of each measure's figure, for some of the queries."""
    return percentiles(resampled_figures(result, some, seed=seed), CONFIDENCE_LEVEL)


def resampled_figures(result: Evaluation, some: BoolArray, *, seed: int = 0) -> FloatArray:
    """Return the figures of queries drawn with replacement, (resamples, measures); shared videos are drawn whole."""
    clusters = video_clusters(result.judgements)
    names = [name for name in result.names if name in result.parts]
    tables = [result.parts[name][some] for name in names]
    groups = None if clusters is None else np.unique(clusters[some], return_inverse=True)[1]
    means = bootstrap_means(np.column_stack([result.values[some], *tables]), clusters=groups, seed=seed)
    figures = means[:, : len(result.names)].copy()
    at = len(result.names)
    for name, table in zip(names, tables, strict=True):
        counted = int((~np.isnan(table).any(axis=1)).sum())
        sums = means[:, at : at + table.shape[1]] * counted
        figures[:, result.names.index(name)] = _caption_measure(result, name).figures(sums)
        at += table.shape[1]
    return figures


def exchange_test(first: Evaluation, second: Evaluation, name: str, *, seed: int = 0) -> float:
    r"""Return the two-sided p-value of Fisher's paired randomisation test of the difference between two figures.

    If both systems are equally good, each caption might as well be the other's. The test exchanges what captions add
    to the figures.

    .. math:: p = P(|f(\sum_i a_i') - f(\sum_i b_i')| \ge |f(\sum_i a_i) - f(\sum_i b_i)|)

    exactly where few captions differ. Riezler and Maxwell, ACL Workshop on Evaluation Measures, 2005.
    """
    measure = _caption_measure(first, name)
    one, two = first.parts[name], second.parts[name]
    counted = ~(np.isnan(one) | np.isnan(two)).any(axis=1)
    clusters = video_clusters(first.judgements)
    groups = None if clusters is None else clusters[counted]
    one, two = cluster_sums(one[counted], groups), cluster_sums(two[counted], groups)
    middle, half = (one + two).sum(axis=0) / 2, (one - two) / 2

    def differences(shift: FloatArray) -> FloatArray:
        return np.abs(measure.figures(middle + shift) - measure.figures(middle - shift))

    unequal = half[half.any(axis=1)]
    if not len(unequal):
        return 1.0
    observed = differences(unequal.sum(axis=0, keepdims=True))[0]
    threshold = observed - 1e-10 * max(observed, 1e-12)
    if len(unequal) <= MAX_EXACT_QUERIES:
        return float((differences(all_signs(len(unequal)) @ unequal) >= threshold).mean())
    drawn = random_signs(len(unequal), seed=seed)
    extreme = sum(int((differences(signs @ unequal) >= threshold).sum()) for signs in drawn)
    return (extreme + 1) / (TEST_RESAMPLES + 1)


def _caption_measure(result: Evaluation, name: str) -> CaptionMeasure:
    measure = result.measures[result.names.index(name)]
    assert isinstance(measure, CaptionMeasure)
    return measure


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """Mean and standard deviation (of a sample: n - 1) over the seeds that have a value."""

    mean: float
    sd: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.sd:.4f}" if self.count > 1 else f"{self.mean:.4f}"


def spread(values: Iterable[float]) -> SeedSpread:
    """Return mean and standard deviation without NaNs; the deviation of a single value is NaN.

    >>> spread([1.0, 3.0, math.nan])
    SeedSpread(mean=2.0, sd=1.4142135623730951, count=2)
    >>> print(spread([0.4, 0.5, 0.6]))
    0.5000 ± 0.1000
    """
    known = [v for v in values if not math.isnan(v)]
    if not known:
        return SeedSpread(math.nan, math.nan, 0)
    mean = math.fsum(known) / len(known)
    if len(known) == 1:
        return SeedSpread(mean, math.nan, 1)
    return SeedSpread(mean, math.sqrt(math.fsum((v - mean) ** 2 for v in known) / (len(known) - 1)), len(known))
