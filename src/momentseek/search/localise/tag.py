"""`tag`: scenes found by k-means, and the union of consecutive scenes that stands out most (TAG, as published).

Mask, Box–Cox, smoothed features with a time channel, k-means++ scenes, all unions of consecutive scenes up to a
prior share of the video scored by contrast, start moved to the beginning of the climb. The published windows are in
frames of about a third of a second; here they are the same stretches of time in clips. `scenes` is what we made of it.
"""

from __future__ import annotations

import numpy as np

from momentseek.moments.arrays import FloatArray
from momentseek.search.localise.boxcox import straightened
from momentseek.search.localise.contrast import contrast_of
from momentseek.search.localise.curve import Curve
from momentseek.search.localise.kmeans import kmeans, squared
from momentseek.search.localise.registry import register
from momentseek.search.localise.rise import smoothed, walked_back
from momentseek.search.localise.runs import Index
from momentseek.search.localise.spans import Spans, suppress

SCENES = 9
PRIOR = 0.5
SMOOTH, VOTE = 5, 3
KEPT = 10


def scene_edges(curve: Curve, scenes: int = SCENES, seed: int = 0) -> Index:
    """Positions between clips where one scene ends and the next begins, with both ends of the video.

    Without features the scores stand for them.
    """
    features = curve.scores[:, None] if curve.features is None else curve.features
    time = np.linspace(0, 1, len(curve))[:, None]
    points: FloatArray = smoothed(np.concatenate((features, time), axis=1).astype(np.float64), SMOOTH)
    distance = smoothed(squared(points, kmeans(points, scenes, seed)), VOTE)
    labels = distance.argmin(1)
    return np.concatenate(([0], np.flatnonzero(np.diff(labels)) + 1, [len(curve)]))


def unions(edges: Index, longest: float) -> tuple[Index, Index]:
    """All runs of consecutive scenes no longer than ``longest`` clips; single scenes always count.

    >>> unions(np.array([0, 2, 5, 6]), 4)
    (array([0, 2, 2, 5]), array([2, 5, 6, 6]))
    """
    i, j = np.triu_indices(len(edges), 1)
    keep = (edges[j] - edges[i] <= longest) | (j == i + 1)
    return edges[i[keep]], edges[j[keep]]


@register("tag")
def tag(curve: Curve, scenes: int = SCENES, prior: float = PRIOR, seed: int = 0) -> Spans:
    """Unions of consecutive scenes of up to ``prior`` of the video, most contrast first.

    >>> spans = tag(Curve.regular([0.1] * 10 + [0.5] * 5 + [0.1] * 5, seconds=2))
    >>> float(spans.start[0]), float(spans.end[0])
    (20.0, 30.0)
    """
    scores = curve.scores.astype(np.float64)
    values = straightened(np.where(smoothed((scores > 0).astype(float), 3) > 0.5, scores, np.minimum(scores, 0.0)))
    first, last = unions(scene_edges(curve, scenes, seed), prior * len(curve))
    places = suppress(Spans.of_clips(curve, first, last, contrast_of(values, first, last)), limit=KEPT)
    first, last = (np.searchsorted(curve.edges, side) for side in (places.start, places.end))
    first = np.asarray([walked_back(values, int(a)) for a in first], dtype=np.intp)
    return suppress(Spans.of_clips(curve, first, last, contrast_of(scores, first, last)))
