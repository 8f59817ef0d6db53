"""`whole`: the whole video as one span, as a search for videos instead of moments would return it."""

from __future__ import annotations

import numpy as np

from momentseek.search.localise.localiser import LOCALISERS, Curve, Proposals


@LOCALISERS.register("whole")
def whole(curve: Curve) -> Proposals:
    """Propose the whole video, scored by its best clip.

    >>> spans = whole(Curve.regular([0.1, 0.5, 0.1], seconds=2))
    >>> spans.start.tolist(), spans.end.tolist(), spans.peak.tolist()
    ([0.0], [6.0], [3.0])
    """
    return Proposals.of_clips(curve, np.array([0]), np.array([len(curve)]), [curve.scores.max()])
