"""Temporal intersection over union, in the two forms that official evaluators use.

Predictions often lie on a 1.5 s or 2 s grid, so overlaps that equal a threshold exactly are common, and
the last bit of the division decides them. Formula, operand order and precision are therefore part of the
contract: change neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from momentseek.moments.arrays import FloatArray


def iou(start: ArrayLike, end: ArrayLike, true_start: ArrayLike, true_end: ArrayLike) -> FloatArray:
    r"""IoU in float64 with union = a + b − intersection.

    .. math:: \frac{|p \cap g|}{(e_p - s_p) + (e_g - s_g) - |p \cap g|}, \qquad 0 \text{ if the union is not positive}

    As TVR-Ranking's, SPR's and QVHighlights' (average precision) evaluators compute it. Times that are
    not numbers give 0.

    >>> iou([0.0, 0.0, 9.0], [3.0, 2.0, 10.0], 1.0, 4.0).round(3).tolist()
    [0.5, 0.25, 0.0]
    """
    s, e, ts, te = (np.asarray(x, dtype=np.float64) for x in (start, end, true_start, true_end))
    inter = np.maximum(0.0, np.minimum(e, te) - np.maximum(s, ts))
    union = (e - s) + (te - ts) - inter
    return _ratio(inter, union, union > 0)


def iou_hull(
    start: ArrayLike,
    end: ArrayLike,
    true_start: ArrayLike,
    true_end: ArrayLike,
    dtype: type[np.floating[Any]] = np.float32,
) -> NDArray[np.floating[Any]]:
    r"""IoU with the hull :math:`\max e - \min s` as union; it equals the true union wherever they overlap.

    TVR's evaluator uses it in float32 (the default here), QVHighlights' for R1 in float64.

    >>> iou_hull([0.0, 9.0], [3.0, 10.0], 1.0, 4.0).tolist()
    [0.5, 0.0]
    """
    s, e, ts, te = (np.asarray(x, dtype=dtype) for x in (start, end, true_start, true_end))
    inter = np.maximum(dtype(0), np.minimum(e, te) - np.maximum(s, ts))
    hull = np.maximum(e, te) - np.minimum(s, ts)
    return _ratio(inter, hull, hull != 0)


def _ratio(part: NDArray[Any], whole: NDArray[Any], valid: NDArray[np.bool_]) -> NDArray[Any]:
    result: NDArray[Any] = np.divide(part, whole, out=np.zeros_like(whole), where=valid)
    return result
