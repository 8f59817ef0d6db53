"""Resamples of figures that are no means: BLEU and METEOR of other captions than these, or of two systems' exchanged.

What captions add to such a figure can be summed (``CaptionMeasure.statistics``), so a resample costs what a mean does.
"""

from __future__ import annotations

import numpy as np

from momentseek.evaluation.bootstrap import CONFIDENCE_LEVEL, bootstrap_means, percentiles
from momentseek.evaluation.result import Evaluation
from momentseek.evaluation.significance import MAX_EXACT_QUERIES, TEST_RESAMPLES, all_signs, random_signs
from momentseek.measures import CaptionMeasure
from momentseek.moments.arrays import BoolArray, FloatArray


def figure_intervals(result: Evaluation, some: BoolArray, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Low and high ends of the 95 % bootstrap interval of each measure's figure, for some of the queries."""
    return percentiles(resampled_figures(result, some, seed=seed), CONFIDENCE_LEVEL)


def resampled_figures(result: Evaluation, some: BoolArray, *, seed: int = 0) -> FloatArray:
    """(resamples, measures): the figures of the same queries, drawn anew with replacement."""
    names = [name for name in result.names if name in result.parts]
    tables = [result.parts[name][some] for name in names]
    means = bootstrap_means(np.column_stack([result.values[some], *tables]), seed=seed)
    figures = means[:, : len(result.names)].copy()
    at = len(result.names)
    for name, table in zip(names, tables, strict=True):
        counted = int((~np.isnan(table).any(axis=1)).sum())
        sums = means[:, at : at + table.shape[1]] * counted
        figures[:, result.names.index(name)] = _caption_measure(result, name).figures(sums)
        at += table.shape[1]
    return figures


def exchange_test(first: Evaluation, second: Evaluation, name: str, *, seed: int = 0) -> float:
    r"""Fisher's paired randomisation test of the difference between two systems' figures: a two-sided p-value.

    If both are equally good, each caption might as well be the other's; what is exchanged is what captions add.

    .. math:: p = P(|f(\sum_i a_i') - f(\sum_i b_i')| \ge |f(\sum_i a_i) - f(\sum_i b_i)|)

    exactly where few captions differ. Riezler and Maxwell, ACL Workshop on Evaluation Measures, 2005.
    """
    measure = _caption_measure(first, name)
    one, two = first.parts[name], second.parts[name]
    counted = ~(np.isnan(one) | np.isnan(two)).any(axis=1)
    one, two = one[counted], two[counted]
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
