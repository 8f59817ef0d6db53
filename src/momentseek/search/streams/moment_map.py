"""Queries to a library that keeps vectors of moments (by MMN or CroCs): the scores of moments, and their bounds.

A moment's score is a concave function of its two cosines (docs/encoders.md), so it lies below every tangent plane:
``score <= score_0 + g_m (cos_m - m_0) + g_o (cos_o - o_0)``. A tangent is linear, and the best moment of each video by
the tangent is what the library's exact scan finds. So the scan gives each video an upper bound of its best score.
Videos are scored in the order of their bounds, until no bound reaches the scores found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.arrays import FloatArray
from momentseek.library.video import AnyVideo
from momentseek.recognition.encoders.protocol import Vectors
from momentseek.recognition.exported.moment_map import MomentMap, MomentScores, combine_cosines, cosines
from momentseek.search.confidence import SCENE_CLIPS, TOLERATED_SPREADS, Scale
from momentseek.search.fusion import fit_spans
from momentseek.search.stream_index import Ids, SampledIndex, StreamIndex
from momentseek.search.streams.span_search import VideoList

BOUNDED_WINDOWS = 100
"""Number of best windows for which the tangents should be tight bounds."""
AVERAGED_WINDOWS = 3
"""Number of windows before and after, in the order of their best scores, over which a tangent's point is averaged."""
MAX_ROUNDING = 1e-4
"""Largest rounding error of a bound."""
MAX_COSINE = 0.999
"""Larger cosines are reduced to this, to keep ``artanh`` finite."""


@dataclass(frozen=True, eq=False)
class MapQuery:
    """A query to the vectors of moments, with the usual scores in the library."""

    query: Vectors
    """The vectors for matching and for overlap, concatenated; both have the same length, together 1."""
    avoid: tuple[tuple[Vectors, float, Scale], ...]
    """Things to avoid: the vector, the weight and the usual scores of each."""
    spread: float
    """Spread of the best scores of the library's windows."""
    sureness: Scale
    """Usual sureness (Fisher's z) of the best moment of a window, by which a hit's level is judged."""
    tangents: tuple[tuple[float, float], ...]
    """Points (two cosines each) at which tangents touch the score."""


def build_map_query(
    index: SampledIndex, weights: Vectors, seen: Vectors, avoid: Sequence[tuple[Vectors, float]]
) -> MapQuery:
    """Build a query from the weighted vectors of what it looks for, and of what it avoids.

    Tangents touch at the windows to be found: at the best one, and at the last one and the end of the first quarter of
    the :data:`BOUNDED_WINDOWS` best. The level of a moment is judged by Fisher's z of its matching cosine, ``artanh
    cos``, compared with the best moments of other windows, because the score saturates and has no meaningful spread.
    """
    known = index.moments
    assert known is not None
    query = equalise_halves(weights @ seen)
    if query is None:
        raise MomentseekError("the parts of the query cancel each other out; ask for one of them")
    if not index.sample_windows:
        raise MomentseekError("all of the library's vectors are damaged; run momentseek verify")
    matched, overlapped, best = (np.empty(len(index.sample_windows)) for _ in range(3))
    for at, rows in enumerate(index.sample_windows):
        cos = cosines(rows, query)
        scores = combine_cosines(*cos, known.power, known.sharpness)
        top = int(np.argmax(scores))
        matched[at], overlapped[at], best[at] = cos[0][top], cos[1][top], scores[top]
    spread = Scale.of(best).spread
    total = index.window_count
    avoided = []
    for row, weight in avoid:
        rest = row - (row @ query) * query
        direction = np.asarray(rest / max(float(np.linalg.norm(rest)), 1e-6), np.float32)
        usual = np.concatenate([rows @ direction for rows in index.sample_windows])
        avoided.append((direction, weight, Scale.of(usual)))
    order = np.argsort(-best, kind="stable")
    deep = min(len(best) - 1, BOUNDED_WINDOWS * len(best) // max(total, 1))
    tangents = []
    for rank in dict.fromkeys((0, deep // 4, deep)):
        near = order[max(0, rank - AVERAGED_WINDOWS) : rank + AVERAGED_WINDOWS + 1] if rank else order[:2]
        tangents.append((float(matched[near].mean()), float(overlapped[near].mean())))
    scale = Scale.of(sureness(matched), SCENE_CLIPS * -(-index.clips // known.window))
    return MapQuery(query, tuple(avoided), spread, scale, tuple(tangents))


def equalise_halves(row: Vectors) -> Vectors | None:
    """Bring both halves of a vector to length 1 / sqrt(2); None if one of them is zero.

    >>> equalise_halves(np.float32([3, 0, 0, 2])).round(3).tolist()
    [0.7070000171661377, 0.0, 0.0, 0.7070000171661377]
    """
    sides = row.reshape(2, -1)
    length = np.linalg.norm(sides, axis=1, keepdims=True)
    return None if (length < 1e-6).any() else np.asarray((sides / length / np.sqrt(2)).ravel(), np.float32)


def sureness(match: FloatArray) -> FloatArray:
    """The sureness of moments: Fisher's z of the matching cosine, ``artanh cos``.

    >>> sureness(np.array([0.0, 0.5])).round(3).tolist()
    [0.0, 0.549]
    """
    result: FloatArray = np.arctanh(np.clip(match, -MAX_COSINE, MAX_COSINE))
    return result


def tangent(known: MomentMap, match: float, overlap: float) -> tuple[float, float, float]:
    """Slopes and constant of the plane that touches the score at two cosines, and nowhere lies below it.

    >>> known = MomentMap(1, np.array([0]), np.array([1]), 1, 0.5, 10.0, 1)
    >>> [round(value, 3) for value in tangent(known, 0.0, 0.0)]
    [0.5, 5.0, -1.04]
    """
    match = max(match, -MAX_COSINE)
    by_match = known.power / (match + 1)
    by_overlap = float(known.sharpness / (1 + np.exp(known.sharpness * overlap)))
    here = float(combine_cosines(np.array([match]), np.array([overlap]), known.power, known.sharpness)[0])
    return by_match, by_overlap, here - by_match * match - by_overlap * overlap


def score_moments(index: StreamIndex, query: MapQuery, video: AnyVideo) -> MomentScores | None:
    """Score a video's moments; None if it has no undamaged vectors of moments."""
    known, rows = index.moments, index.span_rows(video.id)
    if known is None or rows is None:
        return None
    clips = index.clip_counts.get(video.id, 0)
    at = known.of(clips) if clips else None
    if at is None or len(at) != len(rows) or not np.isfinite(rows).all():
        index.damaged_videos.add(video.id)
        return None
    match, overlap = cosines(rows, query.query)
    score = combine_cosines(match, overlap, known.power, known.sharpness)
    for direction, weight, usual in query.avoid:
        excess = (rows @ direction - usual.centre) / usual.spread - TOLERATED_SPREADS
        score = score - weight * query.spread * np.maximum(0, excess)
    score = score + known.alpha * score.max()
    ends = min(clips * index.clip_seconds, video.duration) if video.duration > 0 else clips * index.clip_seconds
    there = at.last * index.clip_seconds < ends
    start, end = (np.minimum(column[there] * index.clip_seconds, ends) for column in (at.start, at.end))
    start, end = fit_spans(start, end, video.duration if video.duration > 0 else ends)
    return MomentScores(start, end, score[there], sureness(match[there]))


def list_by_planes(index: StreamIndex, query: MapQuery, allowed: Ids | None, depth: int) -> tuple[VideoList, ...]:
    """The videos with the best moments by each of the query's tangent planes."""
    assert index.moments is not None
    planes = [tangent(index.moments, *at) for at in query.tangents]
    half = len(query.query) // 2
    probes = np.stack([np.repeat([2 * m, 2 * o], half) * query.query for m, o, _ in planes]).astype(np.float32)
    ids = np.concatenate([np.asarray(s.ids) for s in index.spans])
    mask = None if allowed is None else np.isin(ids, allowed)
    best = index.moment_scan.search(probes, depth, allowed=mask, gone=index.gone)
    return tuple(VideoList(*each) for each in zip(best.ids, best.scores, strict=True))


def bound_videos(known: MomentMap, query: MapQuery, lists: Sequence[VideoList]) -> dict[int, float]:
    """Upper bounds of the scores of each listed video, by id."""
    bounds: dict[int, float] = {}
    planes = [(ids.tolist(), scores.tolist()) for ids, scores in lists]
    constants = [tangent(known, *at)[2] for at in query.tangents]
    for (row, scores), constant in zip(planes, constants, strict=True):
        for id, score in zip(row, scores, strict=True):
            bounds[id] = min(bounds.get(id, np.inf), score + constant)
    # a video that a plane does not list scores at most as much by it as the last one in its list
    for (row, scores), constant in zip(planes, constants, strict=True):
        least = scores[-1] + constant if scores else np.inf
        for id in bounds.keys() - set(row):
            bounds[id] = min(bounds[id], least)
    return {id: (1 + known.alpha) * (bound + MAX_ROUNDING) for id, bound in bounds.items()}
