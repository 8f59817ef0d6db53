"""`tag`: scenes found by k-means, and the union of consecutive scenes that stands out most (TAG, as published).

Mask, Box–Cox, smoothed features with a time channel, k-means++ scenes, all unions of consecutive scenes up to a prior
share of the video scored by contrast, start moved to the beginning of the climb. The published windows are in frames of
about a third of a second; here they have the same duration in clips. `scenes` is our further development.
"""

from __future__ import annotations

import numpy as np

from momentseek.core.moments.arrays import FloatArray, Positions, moving_mean
from momentseek.search.localise.contrast import climb_start, window_contrast
from momentseek.search.localise.localiser import LOCALISERS, Curve, Proposals, suppress
from momentseek.search.localise.scenes import straighten

SCENE_COUNT = 9
"""Number of clusters of k-means in a video."""
MAX_VIDEO_SHARE = 0.5
"""Longest union of scenes as a share of the video."""
FEATURE_CLIPS, VOTE_CLIPS = 5, 3
"""Number of clips over which features, and then distances to the clusters, are averaged."""
MAX_PROPOSALS = 10


@LOCALISERS.register("tag")
def tag(curve: Curve, scenes: int = SCENE_COUNT, share: float = MAX_VIDEO_SHARE, seed: int = 0) -> Proposals:
    """Propose unions of consecutive scenes of up to ``share`` of the video, most contrast first.

    >>> spans = tag(Curve.regular([0.1] * 10 + [0.5] * 5 + [0.1] * 5, seconds=2))
    >>> float(spans.start[0]), float(spans.end[0])
    (20.0, 30.0)
    """
    scores = curve.scores.astype(np.float64)
    values = straighten(np.where(moving_mean((scores > 0).astype(float), 3) > 0.5, scores, np.minimum(scores, 0.0)))
    first, last = scene_unions(scene_edges(curve, scenes, seed), share * len(curve))
    contrast = window_contrast(values, first, last)
    places = suppress(Proposals.of_clips(curve, first, last, contrast), limit=MAX_PROPOSALS)
    first, last = (np.searchsorted(curve.edges, side) for side in (places.start, places.end))
    first = np.asarray([climb_start(values, int(a)) for a in first], dtype=np.intp)
    return suppress(Proposals.of_clips(curve, first, last, window_contrast(scores, first, last)))


def scene_edges(curve: Curve, scenes: int = SCENE_COUNT, seed: int = 0) -> Positions:
    """Positions between clips where one scene ends and the next begins, with both ends of the video.

    If the curve has no features, scenes are found from the scores alone.
    """
    features = curve.scores[:, None] if curve.features is None else curve.features
    time = np.linspace(0, 1, len(curve))[:, None]
    points: FloatArray = moving_mean(np.concatenate((features, time), axis=1).astype(np.float64), FEATURE_CLIPS)
    distance = moving_mean(squared_distances(points, kmeans(points, scenes, seed)), VOTE_CLIPS)
    labels = distance.argmin(1)
    return np.concatenate(([0], np.flatnonzero(np.diff(labels)) + 1, [len(curve)]))


def scene_unions(edges: Positions, longest: float) -> tuple[Positions, Positions]:
    """All runs of consecutive scenes no longer than ``longest`` clips; single scenes always count.

    >>> scene_unions(np.array([0, 2, 5, 6]), 4)
    (array([0, 2, 2, 5]), array([2, 5, 6, 6]))
    """
    i, j = np.triu_indices(len(edges), 1)
    keep = (edges[j] - edges[i] <= longest) | (j == i + 1)
    return edges[i[keep]], edges[j[keep]]


def kmeans(points: FloatArray, k: int, seed: int = 0, rounds: int = 20) -> FloatArray:
    """Centres (≤ k, d) of clusters, by k-means, in numpy and seeded.

    Seeds are drawn with probability ∝ squared distance to the nearest one so far (k-means++), then Lloyd's rounds.
    Equal points give fewer centres. The same points always give the same centres.

    >>> np.sort(kmeans(np.array([[0.0], [0.2], [5.0], [5.2]]), 2), axis=0).round(3).tolist()
    [[0.1], [5.1]]
    """
    draw = np.random.default_rng(seed)
    centres = points[[int(draw.integers(len(points)))]]
    nearest = squared_distances(points, centres)[:, 0]
    while len(centres) < min(k, len(points)) and nearest.sum() > 1e-12:
        pick = int(np.searchsorted(np.cumsum(nearest), draw.random() * nearest.sum()))
        centres = np.concatenate((centres, points[[min(pick, len(points) - 1)]]))
        nearest = np.minimum(nearest, squared_distances(points, centres[-1:])[:, 0])
    labels = None
    for _ in range(rounds):
        new = squared_distances(points, centres).argmin(1)
        if labels is not None and (new == labels).all():
            break
        labels = new
        member = (labels[None, :] == np.arange(len(centres))[:, None]).astype(np.float64)
        size = member.sum(1, keepdims=True)
        centres = np.where(size > 0, member @ points / np.maximum(size, 1), centres)
    return centres


def squared_distances(points: FloatArray, centres: FloatArray) -> FloatArray:
    """(n, k) squared distances of points and centres."""
    result: FloatArray = np.maximum(
        (points**2).sum(1)[:, None] - 2 * points @ centres.T + (centres**2).sum(1)[None, :], 0.0
    )
    return result
