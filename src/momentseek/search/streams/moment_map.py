"""Searching a library whose vectors are those of moments (MMN, CroCs): the videos with the best ones, and those.

A moment's score is a concave function of its two cosines (docs/models-in-the-library.md), so it lies below every
tangent plane: ``score <= score_0 + g_m (cos_m - m_0) + g_o (cos_o - o_0)``. A tangent is linear, and the best moment of
each video by it is what the library's exact scan finds. So the scan gives videos an upper bound of their best score;
they are scored in the order of their bounds, until no bound reaches what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from momentseek.encoders.protocol import Vectors
from momentseek.errors import MomentseekError
from momentseek.library.segments import locate
from momentseek.library.video import Video
from momentseek.moments.arrays import FloatArray
from momentseek.search.confidence import PER_SCENE, Scale
from momentseek.search.inside import inside
from momentseek.search.localise.localiser import MAX_SPANS, Curve
from momentseek.search.streams.sights import Ids, StreamIndex
from momentseek.search.streams.stream_hit import StreamHit
from momentseek.trained.moment_map import MomentMap, MomentScores, combine_cosines, cosines

TOLERATED = 1.0
"""Spreads above the usual from which something to avoid counts."""
DEEP = 100
"""Windows that the tangents are to bound well."""
NEIGHBOURS = 3
"""Windows before and after, in the order of their best scores, over which a tangent's point is averaged."""
ROUNDING = 1e-4
"""By which a bound may be too low."""
STEEPEST = 0.999
"""Cosines above this count as this, where their difference from 1 matters."""

Avoided = tuple[Vectors, float, Scale]
CurveOf = Callable[[Video], Curve | None]


@dataclass(frozen=True, eq=False)
class MapAim:
    """What to look for among moments, and what is usual for it."""

    query: Vectors
    """For matching and for overlap, both halves of the same length, together of length 1."""
    avoid: tuple[Avoided, ...]
    spread: float
    """Of the best scores of the library's windows."""
    sure: Scale
    """What is usual for the sureness of the best moment of a window."""
    tangents: tuple[tuple[float, float], ...]
    """Cosines at which the score is replaced by its tangent."""


def aim_moments(sights: StreamIndex, weights: Vectors, seen: Vectors, avoid: Sequence[tuple[Vectors, float]]) -> MapAim:
    """From the rows of what a query looks for, and of what it avoids with their weights.

    Tangents touch where the windows lie that are to be found: at the best one, and at the last and in the first quarter
    of the :data:`DEEP` best. Whether a moment answers at all is judged by Fisher's z of its matching cosine,
    ``artanh cos``, beside those of other windows' best moments: the score saturates, and has no usual spread.
    """
    known = sights.moments
    assert known is not None
    query = halves_alike(weights @ seen)
    if query is None:
        raise MomentseekError("the parts of the query cancel each other out; ask for one of them")
    if not sights.windows:
        raise MomentseekError("all of the library's vectors are damaged; run momentseek verify")
    matched, overlapped, best = (np.empty(len(sights.windows)) for _ in range(3))
    for at, rows in enumerate(sights.windows):
        cos = cosines(rows, query)
        scores = combine_cosines(*cos, known.power, known.sharpness)
        top = int(np.argmax(scores))
        matched[at], overlapped[at], best[at] = cos[0][top], cos[1][top], scores[top]
    spread = Scale.of(best).spread
    total = sum(known.count(clips) for clips in sights.lengths.values())
    avoided = []
    for row, weight in avoid:
        rest = row - (row @ query) * query
        direction = np.asarray(rest / max(float(np.linalg.norm(rest)), 1e-6), np.float32)
        usual = np.concatenate([rows @ direction for rows in sights.windows])
        avoided.append((direction, weight, Scale.of(usual)))
    order = np.argsort(-best, kind="stable")
    deep = min(len(best) - 1, DEEP * len(best) // max(total, 1))
    tangents = []
    for rank in dict.fromkeys((0, deep // 4, deep)):
        near = order[max(0, rank - NEIGHBOURS) : rank + NEIGHBOURS + 1] if rank else order[:2]
        tangents.append((float(matched[near].mean()), float(overlapped[near].mean())))
    scale = Scale.of(sureness(matched), PER_SCENE * -(-sights.clips // known.window))
    return MapAim(query, tuple(avoided), spread, scale, tuple(tangents))


def halves_alike(row: Vectors) -> Vectors | None:
    """A vector with both halves brought to length 1 / sqrt(2); None if one of them is nothing.

    >>> halves_alike(np.float32([3, 0, 0, 2])).round(3).tolist()
    [0.7070000171661377, 0.0, 0.0, 0.7070000171661377]
    """
    sides = row.reshape(2, -1)
    length = np.linalg.norm(sides, axis=1, keepdims=True)
    return None if (length < 1e-6).any() else np.asarray((sides / length / np.sqrt(2)).ravel(), np.float32)


def sureness(match: FloatArray) -> FloatArray:
    """Fisher's z of matching cosines.

    >>> sureness(np.array([0.0, 0.5])).round(3).tolist()
    [0.0, 0.549]
    """
    result: FloatArray = np.arctanh(np.clip(match, -STEEPEST, STEEPEST))
    return result


def tangent(known: MomentMap, match: float, overlap: float) -> tuple[float, float, float]:
    """Slopes and constant of the plane that touches the score at two cosines, and nowhere lies below it.

    >>> known = MomentMap(1, np.array([0]), np.array([1]), 1, 0.5, 10.0, 1)
    >>> [round(value, 3) for value in tangent(known, 0.0, 0.0)]
    [0.5, 5.0, -1.04]
    """
    match = max(match, -STEEPEST)
    by_match = known.power / (match + 1)
    by_overlap = float(known.sharpness / (1 + np.exp(known.sharpness * overlap)))
    here = float(combine_cosines(np.array([match]), np.array([overlap]), known.power, known.sharpness)[0])
    return by_match, by_overlap, here - by_match * match - by_overlap * overlap


def moments_of(sights: StreamIndex, target: MapAim, video: Video) -> MomentScores | None:
    """A video's moments with their scores; None where it has no sound vectors of them."""
    known, place = sights.moments, locate(sights.spans, video.id)
    if known is None or place is None:
        return None
    rows = sights.spans[place[0]].vectors(place[1])
    clips = sights.lengths.get(video.id, 0)
    at = known.of(clips) if clips else None
    if at is None or len(at) != len(rows) or not np.isfinite(rows).all():
        sights.broken.add(video.id)
        return None
    match, overlap = cosines(rows, target.query)
    score = combine_cosines(match, overlap, known.power, known.sharpness)
    for direction, weight, usual in target.avoid:
        excess = (rows @ direction - usual.centre) / usual.spread - TOLERATED
        score = score - weight * target.spread * np.maximum(0, excess)
    score = score + known.alpha * score.max()
    ends = min(clips * sights.clip_seconds, video.duration) if video.duration > 0 else clips * sights.clip_seconds
    there = at.last * sights.clip_seconds < ends
    start, end = (np.minimum(column[there] * sights.clip_seconds, ends) for column in (at.start, at.end))
    start, end = inside(start, end, video.duration if video.duration > 0 else ends)
    return MomentScores(start, end, score[there], sureness(match[there]))


def look_by_map(
    sights: StreamIndex,
    target: MapAim,
    videos: Callable[[Sequence[int]], Mapping[int, Video]],
    curve_of: CurveOf,
    allowed: Ids | None,
    depth: int,
) -> tuple[list[StreamHit], dict[int, Curve]]:
    """The best moments of the ``depth`` best videos, a few of each, until no other video could be among those.

    How many moments are wanted does not matter: surer ones go first, and how sure one is does not follow from its
    score. Files with the same content count as one video.
    """
    reach = depth
    bounds = upper_bounds(sights, target, allowed, reach)
    known = videos(list(bounds))
    while len(bounds) >= reach and len({_content(video) for video in known.values()}) < depth:
        reach *= 2
        bounds = upper_bounds(sights, target, allowed, reach)
        known = videos(list(bounds))
    curves: dict[int, Curve] = {}
    found: dict[int, list[StreamHit]] = {}
    best: dict[str | int, float] = {}
    for id in sorted((id for id in bounds if id in known), key=lambda id: (-bounds[id], id)):
        if len(best) >= depth and bounds[id] < sorted(best.values(), reverse=True)[depth - 1]:
            break
        made = curve_of(known[id])
        if made is None or made.moments is None or not len(made.moments.start):
            continue
        curves[id] = made
        found[id] = told(id, made, made.moments, target.sure)
        content = _content(known[id])
        best[content] = max(best.get(content, -np.inf), found[id][0].score)
    kept = set(sorted(best, key=lambda content: -best[content])[:depth])
    moments = [m for id, some in found.items() if _content(known[id]) in kept for m in some]
    return sorted(moments, key=lambda m: (-m.score, m.video, m.start, m.end)), curves


def _content(video: Video) -> str | int:
    """What tells a video from others that are not copies of it."""
    return video.hash or video.id


def upper_bounds(sights: StreamIndex, target: MapAim, allowed: Ids | None, depth: int) -> dict[int, float]:
    """Of the videos that may have the best moments, what the best one of each scores at most."""
    known = sights.moments
    assert known is not None
    planes = [tangent(known, *at) for at in target.tangents]
    half = len(target.query) // 2
    probes = np.stack([np.repeat([2 * m, 2 * o], half) * target.query for m, o, _ in planes]).astype(np.float32)
    ids = np.concatenate([np.asarray(s.ids) for s in sights.spans])
    mask = None if allowed is None else np.isin(ids, allowed)
    best = sights.moment_scan.search(probes, depth, allowed=mask, gone=sights.gone)
    bounds: dict[int, float] = {}
    for row, scores, (_, _, constant) in zip(best.ids.tolist(), best.scores.tolist(), planes, strict=True):
        for id, score in zip(row, scores, strict=True):
            bounds[id] = min(bounds.get(id, np.inf), score + constant)
    # a video that a plane did not list has no more by it than the last one that it did
    for row, scores, (_, _, constant) in zip(best.ids.tolist(), best.scores.tolist(), planes, strict=True):
        least = scores[-1] + constant if scores else np.inf
        for id in bounds.keys() - set(row):
            bounds[id] = min(bounds[id], least)
    return {id: (1 + known.alpha) * (bound + ROUNDING) for id, bound in bounds.items()}


def told(video: int, on: Curve, moments: MomentScores, usual: Scale, limit: int = MAX_SPANS) -> list[StreamHit]:
    """The moments of one video that enter the ranking."""
    out = []
    for at in moments.best(limit).tolist():
        start, end = float(moments.start[at]), float(moments.end[at])
        level = usual.level(float(moments.sureness[at]))
        out.append(StreamHit(video, start, end, float(moments.score[at]), level, on.peak(start, end)))
    return out
