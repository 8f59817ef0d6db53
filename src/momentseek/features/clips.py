"""Clips of a video as input of a model: fitted to a maximal length, normalised, with their place in the video.

A clip's times follow from how it was made: ``edges`` says where the fitted clips begin and end in seconds, so that
labels (``labels``) and predicted spans are exact whether a long video was cut or averaged.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from momentseek.errors import MomentseekError

Array = NDArray[np.float32]
Times = NDArray[np.float64]
FIT_METHODS = ("truncate", "resample", "stretch", "rounded")
EndLabel = Literal["inclusive", "official"]


def bounds(rows: int, most: int, how: str) -> Times:
    """Rows at which the fitted clips begin, and the last one's end: ``fitted + 1`` numbers.

    >>> bounds(5, 2, "resample").tolist(), bounds(5, 2, "truncate").tolist(), bounds(2, 4, "resample").tolist()
    ([0.0, 2.0, 5.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    >>> bounds(2, 4, "stretch").tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    if how not in FIT_METHODS:
        raise MomentseekError(f"videos are fitted by {', '.join(FIT_METHODS)}, not by {how!r}")
    if how in ("stretch", "rounded") and rows:
        return np.arange(most + 1) * rows / most
    if rows <= most or how == "truncate":
        return np.arange(min(rows, most) + 1, dtype=np.float64)
    return np.floor(np.arange(most + 1) * rows / most)


def fit_rows(x: Array, most: int, how: str) -> Array:
    """Fit rows to at most ``most`` by the method ``how``.

    ``truncate`` keeps the first ones (XML), ``resample`` replaces longer videos by means of even stretches of whole
    rows (ReLoCLNet), ``stretch`` brings every video, shorter ones too, to exactly ``most`` parts of equal time, each
    the mean of what it covers (2D-TAN). ``rounded`` does so by whole rows, as the public code of 2D-TAN and MMN: part i
    is the mean of rows round(i n/most) to round((i+1) n/most) - 1, or the first of them alone; the last row is never
    reached from below.

    >>> fit_rows(np.float32([[1], [3], [5], [7], [9]]), 2, "resample").ravel().tolist()
    [2.0, 7.0]
    >>> fit_rows(np.float32([[1], [3], [5]]), 2, "stretch").ravel().round(3).tolist()
    [1.6670000553131104, 4.333000183105469]
    >>> fit_rows(np.float32([[1], [3], [5]]), 2, "rounded").ravel().tolist()
    [2.0, 5.0]
    """
    at = bounds(len(x), most, how)
    if how == "rounded" and len(x):
        begin = np.minimum(np.rint(at).astype(np.int64), len(x) - 1)
        return np.stack([x[s : max(e, s + 1)].mean(0) for s, e in pairwise(begin)])
    if not len(x) or how == "truncate" or (how == "resample" and len(x) <= most):
        return x[: len(at) - 1]
    # The integral of the rows up to any time, rows being constant during their clip; a mean is a difference of two.
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0, dtype=np.float64)])
    whole = np.minimum(at.astype(np.int64), len(x) - 1)
    upto = sums[whole] + (at - whole)[:, None] * x[whole]
    return np.asarray(np.diff(upto, axis=0) / np.diff(at)[:, None], dtype=np.float32)


def edges(rows: int, most: int, how: str, clip_seconds: float = 1.5, duration: float = float("nan")) -> Times:
    """Seconds at which the fitted clips begin, and at which the last one ends (not after the video).

    >>> edges(3, 10, "truncate", 1.5, duration=4.0).tolist()
    [0.0, 1.5, 3.0, 4.0]
    """
    seconds = bounds(rows, most, how) * clip_seconds
    if duration == duration and len(seconds) > 1 and seconds[-2] < duration < seconds[-1]:
        seconds[-1] = duration
    return seconds


def labels(
    start: Times, end: Times, clip_edges: Times, end_label: EndLabel = "inclusive"
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last clip (included) of moments ``[start, end)``: floor(s / 1.5) and ceil(e / 1.5) - 1.

    ``official`` labels the clip after the last one, as the public code of XML and ReLoCLNet does.

    >>> moment = np.array([2.0]), np.array([6.0])
    >>> [x.tolist() for x in labels(*moment, edges(10, 10, "truncate"))]
    [[1], [3]]
    >>> [x.tolist() for x in labels(*moment, edges(10, 10, "truncate"), "official")]
    [[1], [4]]
    """
    last = len(clip_edges) - 2
    first = np.clip(np.searchsorted(clip_edges, start, side="right") - 1, 0, last)
    after = np.searchsorted(clip_edges, end, side="left")
    final = np.clip(after if end_label == "official" else after - 1, first, last)
    return first.astype(np.int64), final.astype(np.int64)


def normalise_rows(x: Array, eps: float = 1e-5) -> Array:
    """Rows divided by their length plus ``eps``; rows of zeros (silence) stay zero.

    >>> normalise_rows(np.float32([[3, 4], [0, 0]])).round(3).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    length = np.sqrt(np.einsum("ij,ij->i", x, x, dtype=np.float32))[:, None]
    result: Array = x / (length + np.float32(eps))
    return result


def endpoints(length: int) -> Array:
    """The temporal endpoint feature (TEF): clip i of L is at ``[i/L, (i+1)/L]``.

    >>> endpoints(2).tolist()
    [[0.0, 0.5], [0.5, 1.0]]
    """
    at = np.arange(length + 1, dtype=np.float32) / np.float32(max(length, 1))
    return np.stack([at[:-1], at[1:]], axis=1)
