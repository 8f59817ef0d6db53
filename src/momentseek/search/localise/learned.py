"""`learned`: the spans that a trained model's filters find; the default where XML or ReLoCLNet made the vectors."""

from __future__ import annotations

import numpy as np

from momentseek.core.ranking import best_spans, span_grid
from momentseek.search.localise.localiser import LEARNED_LOCALISER, LOCALISERS, Curve, Proposals
from momentseek.search.localise.scenes import scenes

MAX_PROPOSALS = 60
"""Spans of one video among which near-duplicates are looked for."""


@LOCALISERS.register(LEARNED_LOCALISER)
def learned(curve: Curve) -> Proposals:
    """Propose the likeliest spans by the model's filters; where no such model made the vectors, as `scenes` does.

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
