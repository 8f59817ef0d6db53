"""SaliencyAP[level=…]: are highlights ranked above the rest (QVHighlights' HL-mAP)?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from momentseek.core.moments.arrays import BoolArray, FloatArray
from momentseek.measuring.measures.alignment import Alignment
from momentseek.measuring.measures.hit import Level, predicted_scores, true_highlights
from momentseek.measuring.measures.measure import Measure, register


@register
@dataclass(frozen=True, kw_only=True)
class SaliencyAP(Measure):
    """Interpolated average precision of the clips' scores, averaged over the annotators.

    Scores are cut or padded with zeros to the video's number of clips. An annotator without any highlight gives 0.
    Clips of equal score enter together, and each step of recall counts once, however many highlights it adds, as in
    the official evaluator. This matters for scores with ties.
    """

    NAME = "SaliencyAP"
    ABOUT = "average precision of per-clip saliency (QVHighlights HL-mAP)"

    level: Level = "verygood"

    def __call__(self, view: Alignment) -> FloatArray:
        truth, clips = true_highlights(view, self.level)
        width = truth.shape[1]
        predicted, _ = predicted_scores(view, 0.0)
        scores = np.zeros((view.queries, width))
        shared = min(width, predicted.shape[1])
        scores[:, :shared] = predicted[:, :shared]
        inside = np.arange(width) < clips[:, None]
        scores[~inside] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")
        ranked = np.take_along_axis(scores, order, axis=1)
        # A group of equal scores ends where the next clip's score differs, or the video does.
        ends = inside.copy()
        ends[:, :-1] &= (ranked[:, :-1] != ranked[:, 1:]) | ~inside[:, 1:]
        per_annotator = [
            _average_precision(np.take_along_axis(truth[:, :, a], order, axis=1), ends) for a in range(truth.shape[2])
        ]
        mean: FloatArray = np.mean(per_annotator, axis=0)
        return mean


def _average_precision(relevant: BoolArray, ends: BoolArray) -> FloatArray:
    found = np.cumsum(relevant, axis=1)
    precision = np.where(ends, found / np.arange(1, relevant.shape[1] + 1), 0.0)
    envelope = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    at_end = np.where(ends, found, 0)
    before = np.zeros_like(at_end)
    before[:, 1:] = np.maximum.accumulate(at_end, axis=1)[:, :-1]
    steps = ends & (at_end > before)
    count = steps.sum(axis=1)
    total = (envelope * steps).sum(axis=1)
    result: FloatArray = np.divide(total, count, out=np.zeros(len(total)), where=count > 0)
    return result
