"""A moment of a video, and the overlap (IoU) of two moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Moment:
    """``video`` from ``start`` to ``end`` in seconds, with ``0 <= start < end``.

    >>> Moment("friends_s01e03", 16.48, 33.87)
    Moment(video='friends_s01e03', start=16.48, end=33.87)
    >>> Moment("friends_s01e03", 5, 5)
    Traceback (most recent call last):
        ...
    momentseek.core.errors.MomentseekError: moment 5–5 s of friends_s01e03: start must be before end
    """

    video: str
    start: float
    end: float

    def __post_init__(self) -> None:
        where = f"moment {self.start:g}–{self.end:g} s of {self.video}"
        if not (math.isfinite(self.start) and math.isfinite(self.end)):
            raise MomentseekError(f"{where}: times must be finite numbers")
        if self.start < 0:
            raise MomentseekError(f"{where}: times must not be negative")
        if self.start >= self.end:
            raise MomentseekError(f"{where}: start must be before end")

    @property
    def duration(self) -> float:
        """Length of the moment in seconds."""
        return self.end - self.start


def iou(start: ArrayLike, end: ArrayLike, true_start: ArrayLike, true_end: ArrayLike) -> FloatArray:
    r"""Return the IoU in float64, with union = a + b − intersection.

    .. math:: \frac{|p \cap g|}{(e_p - s_p) + (e_g - s_g) - |p \cap g|}, \qquad 0 \text{ if the union is not positive}

    The evaluators of TVR-Ranking, SPR and QVHighlights (average precision) compute it this way. Times that are not
    numbers give 0.

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
    r"""Return the IoU with the hull :math:`\max e - \min s` as union, which equals the union if the moments overlap.

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
