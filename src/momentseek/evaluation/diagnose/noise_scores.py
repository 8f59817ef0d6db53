"""AxIoU and R as functions of the best IoU among the first k, so that they can be computed from noisy IoUs."""

from __future__ import annotations

import numpy as np

from momentseek.measures import Measure
from momentseek.measures.axiou import AxIoU
from momentseek.measures.recall import Recall
from momentseek.moments.arrays import FloatArray


def covers(measure: Measure) -> bool:
    """Whether the noise model is defined for the measure: AxIoU, and R of moments of any length."""
    if isinstance(measure, Recall):
        return measure.iou is not None and measure.task == "VCMR" and measure.length == "full"
    return isinstance(measure, AxIoU)


def depth_of(measure: Measure) -> int:
    """How many ranks the measure looks at."""
    return int(getattr(measure, "k", 1))


def value_of(measure: Measure, best: FloatArray) -> FloatArray:
    """The measure's value per query, from the best IoU among the first k for every query (row) and k (column).

    >>> from momentseek.measures import parse
    >>> best = np.array([[0.4, 0.6]])
    >>> value_of(parse("AxIoU@2"), best).tolist(), value_of(parse("R@1[IoU>=0.5]"), best).tolist()
    ([0.5], [0.0])
    """
    if isinstance(measure, Recall):
        top = best[:, measure.k - 1]
        assert measure.iou is not None
        return (top > measure.iou if measure.strict else top >= measure.iou).astype(np.float64)
    mean: FloatArray = best[:, : depth_of(measure)].mean(axis=1)
    return mean
