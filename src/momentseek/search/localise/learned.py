"""`learned`: the spans that a trained model finds; the default if XML, ReLoCLNet or Slate made the vectors."""

from __future__ import annotations

import numpy as np

from momentseek.core.ranking import best_spans, span_grid
from momentseek.recognition.exported.span_head import SpanCurves
from momentseek.search.localise.localiser import LEARNED_LOCALISER, LOCALISERS, MAX_SPANS, Curve, Proposals
from momentseek.search.localise.scenes import scenes

MAX_PROPOSALS = 60
"""Largest number of spans of one video."""


@LOCALISERS.register(LEARNED_LOCALISER)
def learned(curve: Curve) -> Proposals:
    """Propose the best spans by the model's filters or curves; if no such model made the vectors, use `scenes`.

    >>> from momentseek.recognition.exported.boundary_head import Boundaries, log_shares
    >>> shares = log_shares(np.array([0.0, 9.0, 0.0, 0.0]), 100), log_shares(np.array([0.0, 0.0, 9.0, 0.0]), 100)
    >>> known = Curve(np.zeros(4), np.arange(5) * 1.5, bounds=Boundaries(*shares, 1, 4, 0.0, np.zeros(4)))
    >>> spans = learned(known)
    >>> float(spans.start[0]), float(spans.end[0])
    (1.5, 4.5)
    """
    bounds = curve.bounds
    if bounds is None:
        return scenes(curve)
    if isinstance(bounds, SpanCurves):
        return by_curves(curve, bounds)
    shortest = min(bounds.shortest, len(curve))
    longest = min(max(bounds.longest, shortest), len(curve))
    grid = span_grid(bounds.start, bounds.end, shortest, longest)
    best = best_spans(grid, MAX_PROPOSALS, shortest)
    finite = np.isfinite(best.score)
    first, last = best.first[finite], best.last[finite]
    last = last + 1 if bounds.end_time == "inclusive" else np.maximum(last, first + 1)
    sums = np.concatenate(([0.0], np.cumsum(bounds.less)))
    less = (sums[last] - sums[first]) / (last - first)
    return Proposals.of_clips(curve, first, last, best.score[finite] + bounds.max_score - less)


def by_curves(curve: Curve, known: SpanCurves) -> Proposals:
    """Propose the best spans by three curves; spans that overlap a better one with an IoU above 0.5 are dropped.

    All spans of a video are considered, however long it is.

    >>> flat = np.zeros(4)
    >>> known = SpanCurves(np.array([0.0, 2, 2, 0]), np.array([0.0, 1, 0, 0]), flat, np.zeros(3, np.float32), 1, flat)
    >>> spans = by_curves(Curve(np.zeros(4), np.arange(5) * 1.5), known)
    >>> float(spans.start[0]), float(spans.end[0]), float(spans.score[0])
    (1.5, 3.0, 3.0)
    """
    shortest = min(known.shortest, len(curve))
    longest = min(shortest + len(known.lengths) - 1, len(curve))
    grid = known.grid(shortest, longest)
    at_every = np.indices(grid.shape)
    first, size = at_every[0], at_every[1] + shortest
    beyond = first + size
    if known.less.any():
        sums = np.concatenate(([0.0], np.cumsum(known.less)))
        grid = grid - (sums[np.minimum(beyond, len(curve))] - sums[first]) / size
    places, scores = [], []
    for _ in range(2 * MAX_SPANS):
        at = np.unravel_index(int(np.argmax(grid)), grid.shape)
        if not np.isfinite(grid[at]):
            break
        places.append((first[at], beyond[at]))
        scores.append(grid[at])
        shared = np.minimum(beyond, beyond[at]) - np.maximum(first, first[at])
        grid = np.where(3 * shared > size + size[at], -np.inf, grid)  # an IoU above 0.5
    starts, ends = np.array(places, np.intp).T
    return Proposals.of_clips(curve, starts, ends, scores)
