"""Searching a library whose vectors a trained model made, by the model's own scores instead of clip by clip.

A model with a boundary head (XML, ReLoCLNet) scores videos, and its head finds spans on their curves; a map model (MMN,
CroCs) keeps vectors of moments, and scores these.
"""

from __future__ import annotations

import numpy as np

from momentseek.library.video import Video
from momentseek.search.confidence import Scale
from momentseek.search.hit import StreamHit
from momentseek.search.localise.localiser import LEARNED_LOCALISER, MAX_SPANS, Curve
from momentseek.search.state import Ids, LibraryState
from momentseek.search.streams.moment_map import upper_bounds
from momentseek.search.streams.vision import MAX_VIDEOS, VisionQuery, VisionResult, build_curve, hits_on_curve
from momentseek.trained.moment_map import MomentScores


def search_by_head(
    state: LibraryState, query: VisionQuery, allowed: Ids | None, page: int = 20, depth: int = MAX_VIDEOS
) -> VisionResult:
    """The best videos by the model's score, and spans on them until no other video could have a better one.

    The scan finds candidates by all modalities together and by each alone; then the model's own score ranks them.
    """
    index, head = state.vision, state.vision.head
    assert head is not None
    best = index.scan.search(head.probes(query.vector), depth, allowed=index.allowed_mask(allowed), gone=index.gone)
    columns = (column.ravel().tolist() for column in (best.ids, best.segment, best.at))
    places = {id: (segment, at) for id, segment, at in zip(*columns, strict=True)}
    videos = state.videos(places)
    match = {id: head.match(index.segments[s].vectors(at), query.vector) for id, (s, at) in places.items()}
    curves: dict[int, Curve] = {}
    hits: list[StreamHit] = []
    enough = -np.inf
    for id in sorted(videos, key=lambda id: (-match[id], id))[:depth]:
        if head.alpha * match[id] < enough:
            break
        curve = build_curve(index, query, videos[id], places[id])
        if curve is not None:
            curves[id] = curve
            hits += hits_on_curve(id, curve, query, LEARNED_LOCALISER)
            if len(hits) >= page:
                enough = sorted((hit.score for hit in hits), reverse=True)[page - 1]
    return VisionResult.from_hits(hits, curves)


def search_by_map(
    state: LibraryState, query: VisionQuery, allowed: Ids | None, depth: int = MAX_VIDEOS
) -> VisionResult:
    """The best moments of the ``depth`` best videos, a few of each, until no other video could be among those.

    How many moments are wanted does not matter: surer ones go first, and how sure one is does not follow from its
    score. Files with the same content count as one video.
    """
    index, moments_query = state.vision, query.moments
    assert moments_query is not None
    reach = depth
    bounds = upper_bounds(index, moments_query, allowed, reach)
    videos = state.videos(bounds)
    while len(bounds) >= reach and len({_content_key(video) for video in videos.values()}) < depth:
        reach *= 2
        bounds = upper_bounds(index, moments_query, allowed, reach)
        videos = state.videos(bounds)
    curves: dict[int, Curve] = {}
    hits: dict[int, list[StreamHit]] = {}
    best: dict[str | int, float] = {}
    for id in sorted(videos, key=lambda id: (-bounds[id], id)):
        if len(best) >= depth and bounds[id] < sorted(best.values(), reverse=True)[depth - 1]:
            break
        curve = build_curve(index, query, videos[id])
        if curve is None or curve.moments is None or not len(curve.moments.start):
            continue
        curves[id] = curve
        hits[id] = _best_moments(id, curve, curve.moments, moments_query.sureness)
        content = _content_key(videos[id])
        best[content] = max(best.get(content, -np.inf), hits[id][0].score)
    stay = set(sorted(best, key=lambda content: -best[content])[:depth])
    found = [hit for id, some in hits.items() if _content_key(videos[id]) in stay for hit in some]
    return VisionResult.from_hits(found, curves)


def _best_moments(video: int, curve: Curve, moments: MomentScores, usual: Scale) -> list[StreamHit]:
    """The moments of one video that enter the ranking."""
    out = []
    for at in moments.best(MAX_SPANS).tolist():
        start, end = float(moments.start[at]), float(moments.end[at])
        level = usual.level(float(moments.sureness[at]))
        out.append(StreamHit(video, start, end, float(moments.score[at]), level, curve.peak(start, end)))
    return out


def _content_key(video: Video) -> str | int:
    """What tells a video from others that are not copies of it."""
    return video.hash or video.id
