"""Query-performance prediction: do a run's own scores show on which queries it is good?

Predictors are computed per query from the scores of the first 10 predictions, without the truth, and correlated with
the query's figure. A good predictor shows which queries a system should not be trusted on. Sources: NQC, Shtok et al.,
ACM TOIS 30 (2012); WIG, Zhou and Croft, SIGIR 2007; clarity, Cronen-Townsend et al., SIGIR 2002.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray, IntArray
from momentseek.core.moments.judgements import Judgements
from momentseek.core.moments.run import Run
from momentseek.core.reports import NO_VALUE, count, text_table
from momentseek.measuring.replicates import video_clusters
from momentseek.measuring.resampling import CONFIDENCE_LEVEL, percentiles
from momentseek.measuring.result import Evaluation

DEPTH = 10
"""Number of predictions of a query that are used."""
RESAMPLES = 500
MAX_QUERIES = 2000
"""Maximum number of queries, all pairs of which are compared; from more, a random sample of this size is used."""
PREDICTORS = {
    "top": "the first score",
    "gap": "the first score minus the second",
    "spread": "standard deviation of the first 10 scores",
    "NQC": "spread divided by the absolute value of the query's mean score",
    "WIG": "mean of the first 10 minus the query's mean score",
    "clarity": "how uneven the first 10 scores are: log k minus the entropy of their softmax",
    "cohesion": "share of the first 10 that are in the most frequent video",
}


def predict_performance(run: Run, truth: Judgements) -> FloatArray:
    """Return the predictors of each query of the truth, (queries, predictors); NaN if a list is too short.

    >>> run = Run.from_rows([("q", "v", 0, 1, 3.0), ("q", "v", 1, 2, 1.0), ("q", "w", 0, 1, 1.0)])
    >>> found = predict_performance(run, Judgements.from_rows([("q", "v", 0, 1, 1)]))
    >>> dict(zip(PREDICTORS, found[0].round(3).tolist(), strict=True))["gap"]
    2.0
    """
    found = np.full((len(truth), len(PREDICTORS)), np.nan)
    whole = run.score.std() if len(run.score) else 0.0
    for place, query in enumerate(truth.query_ids):
        if query not in run:
            continue
        rows = run.rows(query)
        every, videos = run.score[rows], run.video[rows][:DEPTH]
        first = every[:DEPTH]
        if not len(first):
            continue
        found[place, 0] = first[0]
        found[place, 6] = np.bincount(videos).max() / len(videos)
        if len(first) < 2:
            continue
        mean = float(every.mean())
        spread = float(first.std())
        weights = np.exp((first - first.max()) / (whole or 1.0))
        weights /= weights.sum()
        clarity = math.log(len(first)) + float((weights * np.log(weights)).sum())
        found[place, 1:6] = (
            first[0] - first[1],
            spread,
            spread / abs(mean) if mean else np.nan,
            first.mean() - mean,
            clarity,
        )
    return found


def pearson(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Pearson's r of two columns, for each row of ``weights`` (resamples, queries)."""
    total = weights.sum(axis=1)
    mean_x, mean_y = weights @ x / total, weights @ y / total
    cov = weights @ (x * y) / total - mean_x * mean_y
    var_x, var_y = weights @ (x * x) / total - mean_x**2, weights @ (y * y) / total - mean_y**2
    scale = np.sqrt(np.maximum(var_x, 0) * np.maximum(var_y, 0))
    result: FloatArray = np.divide(cov, scale, out=np.full(len(total), np.nan), where=scale > 1e-12)
    return result


def kendall(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Return Kendall's :math:`\tau_b` of two columns, for each row of ``weights`` (resamples, queries).

    >>> one, two = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])
    >>> kendall(one, two, np.ones((1, 4))).round(4).tolist()
    [0.6667]
    """
    order_x, order_y = (np.sign(np.subtract.outer(v, v)).astype(np.float32) for v in (x, y))
    w = weights.astype(np.float32)
    same = ((w @ (order_x * order_y)) * w).sum(axis=1, dtype=np.float64)
    pairs_x, pairs_y = (((w @ np.abs(order)) * w).sum(axis=1, dtype=np.float64) for order in (order_x, order_y))
    scale = np.sqrt(pairs_x * pairs_y)
    result: FloatArray = np.divide(same, scale, out=np.full(len(w), np.nan), where=scale > 0)
    return result


@dataclass(frozen=True)
class PredictorFigures:
    """The correlations of one predictor with one measure: value and ends of the 95 % interval."""

    predictor: str
    queries: int
    pearson: tuple[float, float, float]
    kendall: tuple[float, float, float]


@dataclass(frozen=True)
class PerformanceReport:
    """The correlations of all predictors of one run with one measure, on one truth."""

    truth: str
    run: str
    measure: str
    figures: tuple[PredictorFigures, ...]


def measure_performance(
    run: Run, evaluation: Evaluation, truth: Judgements, *, seed: int = 0
) -> list[PerformanceReport]:
    """Correlate every predictor with every measure, with bootstrap intervals; shared videos are drawn whole."""
    predicted = predict_performance(run, truth)
    if not any(np.ptp(column[np.isfinite(column)], axis=0) > 1e-12 for column in predicted[:, :6].T if _some(column)):
        raise MomentseekError(
            f"{run.source}: its scores only repeat the rank, the same for every query; give a run with its own scores"
        )
    clusters = video_clusters(truth)
    groups = np.arange(len(truth)) if clusters is None else clusters
    reports = []
    for column, name in enumerate(evaluation.names):
        figures = [
            _correlate(predictor, predicted[:, i], evaluation.values[:, column], groups, seed)
            for i, predictor in enumerate(PREDICTORS)
        ]
        reports.append(PerformanceReport(truth.source, evaluation.run, name, tuple(figures)))
    return reports


def _some(column: FloatArray) -> bool:
    return bool(np.isfinite(column).any())


def _correlate(predictor: str, x: FloatArray, y: FloatArray, groups: IntArray, seed: int) -> PredictorFigures:
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    rng = np.random.default_rng(seed)
    if len(known) > MAX_QUERIES:
        known = np.sort(rng.choice(known, MAX_QUERIES, replace=False))
    nothing = (math.nan, math.nan, math.nan)
    if len(known) < 3:
        return PredictorFigures(predictor, len(known), nothing, nothing)
    x, y = x[known] - x[known].mean(), y[known]
    _, group = np.unique(groups[known], return_inverse=True)
    number = int(group.max()) + 1
    drawn = rng.multinomial(number, np.full(number, 1 / number), size=RESAMPLES)[:, group].astype(np.float64)
    weights = np.vstack([np.ones(len(known)), drawn])
    estimates = []
    for values in (pearson(x, y, weights), kendall(x, y, weights)):
        low, high = percentiles(values[1:, None], CONFIDENCE_LEVEL)
        estimates.append((float(values[0]), float(low[0]), float(high[0])))
    return PredictorFigures(predictor, len(known), estimates[0], estimates[1])


def performance_text(reports: Sequence[PerformanceReport]) -> str:
    """Render the correlations of all runs, and how to read them."""
    blocks = ["PERFORMANCE: do a run's own scores show on which queries it is good?"]
    for report in reports:
        rows = [
            [f.predictor, _interval(f.pearson), _interval(f.kendall), PREDICTORS[f.predictor]] for f in report.figures
        ]
        queries = max((f.queries for f in report.figures), default=0)
        blocks.append(
            f"{report.run}, {report.measure}, {Path(report.truth).name}: {count(queries, 'query', 'queries')}."
        )
        blocks.append(text_table(["predictor", "Pearson r", "Kendall τ", ""], rows, align="lrrl"))
    blocks.append("Brackets: 95 % bootstrap interval. 0: no correlation; an interval that contains 0 is no evidence.")
    return "\n\n".join(blocks)


def _interval(estimate: tuple[float, float, float]) -> str:
    value, low, high = estimate
    return NO_VALUE if value != value else f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"
