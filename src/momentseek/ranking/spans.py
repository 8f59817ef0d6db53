"""Spans of clips: every start with every length allowed, and the best of them.

A grid ``(clips, lengths)`` has one entry per start and length, which for a longest span of 16 clips is an eighth of the
square of starts and ends that 128 clips would take.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from momentseek.moments.arrays import BoolArray, IntArray
from momentseek.ranking.top import Scores, top


class Spans(NamedTuple):
    """Spans of clips ``first`` to ``last`` (included) with their scores, best first; arrays of one shape.

    A score of minus infinity stands where there are no more spans.
    """

    first: IntArray
    last: IntArray
    score: Scores


def span_grid(
    start: NDArray[Any], end: NDArray[Any], shortest: int = 1, longest: int | None = None, mask: BoolArray | None = None
) -> Scores:
    """``[..., s, w] = start[..., s] + end[..., s + shortest - 1 + w]``: scores of all spans with the lengths allowed.

    ``start`` and ``end`` are ``(..., clips)`` logarithms of probabilities, so the sum is the logarithm of XML's
    ``p_start p_end`` (TVR, section 4.4). Spans that leave the video, or touch a clip that ``mask`` denies, are minus
    infinity.

    >>> span_grid(np.array([0.0, -1.0, -2.0]), np.array([-5.0, -6.0, -7.0]), 1, 2).tolist()
    [[-5.0, -6.0], [-7.0, -8.0], [-9.0, -inf]]
    """
    clips = start.shape[-1]
    longest = clips if longest is None else longest
    if not 1 <= shortest <= longest:
        raise ValueError(f"spans of {shortest} to {longest} clips do not exist")
    lengths = longest - shortest + 1
    last = np.arange(clips)[:, None] + np.arange(shortest - 1, longest)
    inside = last < clips
    grid = start[..., :, None] + end[..., np.where(inside, last, 0)]
    allowed: BoolArray = np.broadcast_to(inside, grid.shape)
    if mask is not None:
        # Clips denied so far, so that a span with one of them inside is found by two lookups.
        denied = np.concatenate([np.zeros((*mask.shape[:-1], 1), np.int64), np.cumsum(~mask, axis=-1)], axis=-1)
        within = denied[..., np.where(inside, last + 1, 0)] - denied[..., :clips, None]
        allowed = allowed & (within == 0)
    assert grid.shape[-1] == lengths
    return np.where(allowed, grid, -np.inf).astype(grid.dtype)


def best_spans(grid: Scores, k: int, shortest: int = 1) -> Spans:
    """The ``k`` best spans of each grid ``(..., clips, lengths)``; ties go to the earlier and then the shorter span.

    >>> best_spans(np.array([[-5.0, -1.0], [-1.0, -8.0], [-9.0, -np.inf]]), 2)
    Spans(first=array([0, 1]), last=array([1, 1]), score=array([-1., -1.]))
    """
    lengths = grid.shape[-1]
    places, score = top(grid.reshape(*grid.shape[:-2], -1), k)
    first, length = np.divmod(places, max(1, lengths))
    return Spans(first, first + shortest - 1 + length, score)
