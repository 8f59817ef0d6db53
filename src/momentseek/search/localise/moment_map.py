"""`map`: the candidate moments that a trained map model has scored; the default if MMN or CroCs made the vectors."""

from __future__ import annotations

from momentseek.search.localise.localiser import LOCALISERS, MAP_LOCALISER, Curve, Proposals
from momentseek.search.localise.scenes import scenes

MAX_PROPOSALS = 60
"""Largest number of moments of one video."""


@LOCALISERS.register(MAP_LOCALISER)
def moment_map(curve: Curve) -> Proposals:
    """Propose the model's best moments without near-duplicates; if no such model made the vectors, use `scenes`.

    >>> import numpy as np
    >>> from momentseek.recognition.exported.moment_map import MomentScores
    >>> known = MomentScores(np.array([0.0, 3.0]), np.array([3.0, 4.5]), np.array([-0.9, -0.2]), np.zeros(2))
    >>> spans = moment_map(Curve(np.float32([0, 0, 1]), np.arange(4) * 1.5, moments=known))
    >>> spans.start.tolist(), spans.peak.tolist()
    ([3.0, 0.0], [3.75, 0.75])
    """
    moments = curve.moments
    if moments is None or not len(moments.start):
        return scenes(curve)
    best = moments.best(MAX_PROPOSALS)
    start, end = moments.start[best], moments.end[best]
    peaks = [curve.peak(*span) for span in zip(start, end, strict=True)]
    return Proposals.from_columns(start, end, moments.score[best], peaks)
