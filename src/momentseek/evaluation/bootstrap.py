"""Bootstrap intervals: how far a mean over queries would move with another sample of queries."""

from __future__ import annotations

import numpy as np

from momentseek.errors import MomentseekError
from momentseek.moments.arrays import FloatArray

BOOTSTRAP_RESAMPLES = 2000
CHANCE_RESAMPLES = 20
"""Draws whose mean says what chance alone would give; no interval is taken from them."""
CONFIDENCE_LEVEL = 0.95
"""Confidence level of the intervals."""
DRAWS_AT_ONCE = 1 << 20
"""Draws held at once; about 20 MB, whatever the number of queries."""


def bootstrap_interval(
    values: FloatArray, *, level: float = CONFIDENCE_LEVEL, resamples: int = BOOTSTRAP_RESAMPLES, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Low and high ends of the percentile interval of each column's mean over its rows.

    ``values`` is (queries, measures); NaN means that the query does not count for that measure. Efron and
    Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.

    >>> low, high = bootstrap_interval(np.array([[0.0, 0.5], [1.0, 0.5]] * 50))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.4, 0.5], [0.6, 0.5])
    """
    return percentiles(bootstrap_means(values, resamples=resamples, seed=seed), level)


def bootstrap_means(values: FloatArray, *, resamples: int = BOOTSTRAP_RESAMPLES, seed: int = 0) -> FloatArray:
    """(resamples, measures): each measure's mean over the same queries, drawn anew with replacement.

    A resample in which no query counts for a measure gives NaN. All measures see the same draws, so that the
    difference of two columns is the resampled difference, provided that their NaNs agree.

    >>> bootstrap_means(np.array([[0.25], [0.25], [np.nan]]), resamples=3).ravel().tolist()
    [0.25, 0.25, 0.25]
    """
    if resamples < 1:
        raise MomentseekError(f"{resamples} resamples make no interval; ask for at least 1")
    queries, measures = values.shape
    means = np.full((resamples, measures), np.nan)
    if queries == 0:
        return means
    counting = np.isfinite(values)
    filled = np.where(counting, values, 0.0)
    some_missing = not counting.all()
    generator = np.random.default_rng(seed)
    step = max(1, DRAWS_AT_ONCE // queries)
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        # Each row draws queries; the row's number times `queries` keeps the rows apart in one bincount.
        draws = generator.integers(0, queries, size=(rows, queries), dtype=np.int32).astype(np.int64)
        draws += np.arange(rows, dtype=np.int64)[:, None] * queries
        counts = np.bincount(draws.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.float64)
        total = counts @ filled
        size = counts @ counting.astype(np.float64) if some_missing else np.full_like(total, queries)
        np.divide(total, size, out=means[first : first + rows], where=size > 0)
    return means


def percentiles(means: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """The middle ``level`` of each column of resampled means; NaN for a column without any.

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
