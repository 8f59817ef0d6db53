"""``otsu``: clips above the threshold that separates high and low scores best (Otsu, 1979)."""

from __future__ import annotations

import numpy as np

from momentseek.core.moments.arrays import moving_mean, runs_of_true
from momentseek.search.localise.localiser import LOCALISERS, Curve, Proposals, suppress


@LOCALISERS.register("otsu")
def otsu(curve: Curve) -> Proposals:
    """Propose each run of clips above the threshold, scored by its mean; the whole video if all clips are alike."""
    scores = moving_mean(curve.scores.astype(np.float64), 3)
    ordered = np.sort(scores)
    below = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    low, high = sums[:-1] / below, (sums[-1] - sums[:-1]) / (len(ordered) - below)
    between = below * (len(ordered) - below) * (high - low) ** 2
    above = scores > ordered[int(np.argmax(between))] if len(between) else np.zeros(len(scores), dtype=bool)
    first, last = runs_of_true(above if above.any() else np.ones(len(scores), dtype=bool))
    total = np.concatenate(([0.0], np.cumsum(scores)))
    return suppress(Proposals.of_clips(curve, first, last, (total[last] - total[first]) / (last - first)))
