"""`window`: fixed windows, each scored by its mean, as a search without localisation would return them."""

from __future__ import annotations

import numpy as np

from momentseek.search.localise.localiser import LOCALISERS, Curve, Proposals, suppress

WINDOW_SECONDS = 10.0


@LOCALISERS.register("window")
def window(curve: Curve, seconds: float = WINDOW_SECONDS) -> Proposals:
    """Propose windows of about ``seconds``, half overlapping, near-duplicates suppressed.

    >>> spans = window(Curve.regular([0.1, 0.1, 0.5, 0.5, 0.1, 0.1], seconds=2), seconds=4)
    >>> spans.start.tolist(), spans.end.tolist()
    ([4.0, 0.0, 8.0], [8.0, 4.0, 12.0])
    """
    count = len(curve)
    clip = curve.duration - float(curve.edges[0])
    length = min(count, max(1, round(seconds / (clip / count))))
    first = np.unique(np.append(np.arange(0, count - length + 1, max(1, length // 2)), count - length))
    sums = np.concatenate(([0.0], np.cumsum(curve.scores, dtype=np.float64)))
    means = (sums[first + length] - sums[first]) / length
    return suppress(Proposals.of_clips(curve, first, first + length, means), iou=0.3)
